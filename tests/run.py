"""Builds and runs every test of the project and prints one closing line: N passed, N failed.

C++ tests run under CTest, Python and web tests under unittest (python/tests, tests/web). With --full the long
campaigns run too (TOPSIM_FULL=1 in the environment of the tests) and the C++ tests once more under the sanitizers.
"""

import os
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
JOBS = str(os.cpu_count() or 2)


def call(command, **options):
    print("$ " + " ".join(str(part) for part in command), flush=True)
    return subprocess.run(command, cwd=ROOT, **options)


def run_ctest(preset, configure=()):
    """Returns (passed, failed, skipped) of one preset's CTest run; a failed build counts as one failure."""
    for step in (["cmake", "--preset", preset, "-DBUILD_TESTING=ON", *configure],
                 ["cmake", "--build", f"build/{preset}", "-j", JOBS]):
        if call(step, stdout=subprocess.DEVNULL).returncode:
            print(f"FAILED: {' '.join(step)}")
            return 0, 1, 0
    report = ROOT / "build" / preset / "ctest.xml"
    call(["ctest", "--test-dir", f"build/{preset}", "-j", JOBS, "--output-on-failure", "--no-tests=error",
          "--timeout", "1200", "--output-junit", str(report), "-Q"], stdout=subprocess.DEVNULL)
    passed = failed = skipped = 0
    for case in xml.etree.ElementTree.parse(report).getroot().iter("testcase"):
        status = case.get("status")
        if status == "run":
            passed += 1
        elif status in ("notrun", "disabled"):
            skipped += 1
            print(f"skipped: {case.get('name')}")
        else:
            failed += 1
            print(f"FAILED: {case.get('name')}\n{case.findtext('system-out', '')}")
    print(f"{preset}: {passed} passed, {failed} failed, {skipped} skipped", flush=True)
    return passed, failed, skipped


def run_unittest(folder):
    """Runs the unittest files of a folder with the system python3; returns (passed, failed, skipped)."""
    if not list((ROOT / folder).glob("test_*.py")):
        return 0, 0, 0
    environment = dict(os.environ, PYTHONPATH=str(ROOT / "build/release/python"),
                       PATH=f"{ROOT / 'build/release'}:{os.environ['PATH']}")
    result = call([sys.executable, "-m", "unittest", "discover", "-s", folder, "-p", "test_*.py"],
                  env=environment, stderr=subprocess.PIPE, text=True)
    ran = re.search(r"^Ran (\d+) tests?", result.stderr, re.M)
    count = {key: int(match.group(1)) if (match := re.search(rf"{key}=(\d+)", result.stderr.splitlines()[-1])) else 0
             for key in ("failures", "errors", "skipped")}
    failed = count["failures"] + count["errors"]
    if result.returncode and not failed:
        failed = 1
    if failed or count["skipped"]:
        print(result.stderr)
    passed = (int(ran.group(1)) if ran else 0) - failed - count["skipped"]
    print(f"{folder}: {passed} passed, {failed} failed, {count['skipped']} skipped", flush=True)
    return passed, failed, count["skipped"]


def main():
    full = "--full" in sys.argv[1:]
    if full:
        os.environ["TOPSIM_FULL"] = "1"
    totals = [run_ctest("release"), run_unittest("tests/scripts"), run_unittest("tests/python"),
              run_unittest("tests/web")]
    if full:
        totals.append(run_ctest("asan"))
        totals.append(run_ctest("tsan"))
    passed, failed, skipped = (sum(column) for column in zip(*totals))
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
