"""PEP 517 backend: `pip install .` builds with CMake and packs what `cmake --install` installs. It needs nothing but the
standard library and the build tools of install.sh, so it works without a network and with build isolation.

The wheel holds the package, the topsim command and the configs; the latter two land under the environment's bin/ and share/.
`pip install . --config-settings build=build/release` packs what is already built there for this Python, in seconds.
"""

import base64
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
NAME = "topsim"


def _version():
    return re.search(r"project\(topsim VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text()).group(1)


def _tag():
    python = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    platform = re.sub(r"[-.]", "_", sysconfig.get_platform())
    return f"{python}-{python}-{platform}"


def _metadata():
    """What pyproject.toml says, in core metadata; by hand, as Python 3.8 to 3.10 read no TOML."""
    project = (ROOT / "pyproject.toml").read_text()

    def stated(key):
        return re.search(rf"^{key} = (.+)$", project, re.MULTILINE).group(1)

    return (f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {_version()}\n"
            f"Summary: {stated('description').strip(chr(34))}\n"
            f"Requires-Python: {stated('requires-python').strip(chr(34))}\n"
            + "".join(f"Requires-Dist: {name}; extra == 'all'\n" for name in re.findall(r'"([^"]+)"', stated("all")))
            + "Provides-Extra: all\n")


def _build(build):
    """Builds in the folder `build`; again only what changed."""
    configure = ["cmake", "-S", str(ROOT), "-B", str(build), "-DCMAKE_BUILD_TYPE=Release", "-DBUILD_TESTING=OFF",
                 "-DTOPSIM_PYTHON=ON", f"-DPython_EXECUTABLE={sys.executable}", "-DTOPSIM_PYTHON_DIR=package"]
    if not (build / "CMakeCache.txt").exists() and _works("ninja"):
        configure += ["-G", "Ninja"]
    for command in (configure, ["cmake", "--build", str(build), "-j", str(os.cpu_count() or 1)]):
        subprocess.run(command, check=True)


def _install(prefix, built):
    """Installs what lies in the build folder `built`, else what is built now: beside the source, or where one can write.
    Returns where below `prefix` the package lies."""
    with tempfile.TemporaryDirectory() as scratch:
        build = ROOT / built if built else ROOT / "build" / f"pip-{_tag()}"
        if not built:
            build = build if os.access(ROOT, os.W_OK) else pathlib.Path(scratch)
            _build(build)
        subprocess.run(["cmake", "--install", str(build), "--prefix", str(prefix)], check=True)
    modules = list(prefix.rglob(f"{NAME}/_core{sysconfig.get_config_var('EXT_SUFFIX')}"))
    if not modules:
        raise RuntimeError("the module for this Python was not built: see CMake's line about it above (apt install "
                           "pybind11-dev, and the headers of this Python)")
    return modules[0].parent.parent


def _works(program):
    try:
        return subprocess.run([program, "--version"], stdout=subprocess.DEVNULL).returncode == 0
    except OSError:
        return False


def _places(prefix, package):
    """(file, its name in the wheel)"""
    data = f"{NAME}-{_version()}.data"
    for file in sorted(path for path in prefix.rglob("*") if path.is_file()):
        inside = file.relative_to(prefix)
        if package in file.parents:
            yield file, file.relative_to(package).as_posix()
        elif inside.parts[0] == "bin":
            yield file, f"{data}/scripts/{'/'.join(inside.parts[1:])}"
        else:
            yield file, f"{data}/data/{inside.as_posix()}"


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """The package, the command and the configs. config_settings["build"]: a folder in which they are already built."""
    info = f"{NAME}-{_version()}.dist-info"
    wheel = f"{NAME}-{_version()}-{_tag()}.whl"
    record = []
    with tempfile.TemporaryDirectory() as folder, \
            zipfile.ZipFile(os.path.join(wheel_directory, wheel), "w", zipfile.ZIP_DEFLATED) as archive:
        prefix = pathlib.Path(folder)
        package = _install(prefix, (config_settings or {}).get("build"))

        def add(name, content, mode=0o644):
            entry = zipfile.ZipInfo(name)
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            record.append(f"{name},sha256={digest},{len(content)}")

        for file, name in _places(prefix, package):
            add(name, file.read_bytes(), file.stat().st_mode & 0o777)
        add(f"{info}/METADATA", _metadata().encode())
        add(f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: topsim_build\nRoot-Is-Purelib: false\nTag: {_tag()}\n"
            .encode())
        add(f"{info}/RECORD", ("\n".join([*record, f"{info}/RECORD,,"]) + "\n").encode())
    return wheel


def build_sdist(sdist_directory, config_settings=None):
    """The files that git knows, with PKG-INFO."""
    base = f"{NAME}-{_version()}"
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
    with tempfile.NamedTemporaryFile() as info, \
            tarfile.open(os.path.join(sdist_directory, f"{base}.tar.gz"), "w:gz") as archive:
        for name in listed.decode().split("\0"):
            if name:
                archive.add(ROOT / name, f"{base}/{name}")
        info.write(_metadata().encode())
        info.flush()
        archive.add(info.name, f"{base}/PKG-INFO")
    return f"{base}.tar.gz"
