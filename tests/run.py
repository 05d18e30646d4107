"""Builds and runs every test of the project and prints one closing line: N passed, N failed.

C++ tests run under CTest; the unittest files of tests/scripts (the program), tests/python (the module) and tests/web
(the report page) run one process a file. With --full the long campaigns run too (TOPSIM_FULL=1 in the environment of
the tests) and the C++ tests, without the campaigns, once more under the sanitizers. Words that are no option choose
unittest files by name:
`python3 tests/run.py cli examples` runs test_cli.py and test_examples.py alone.
"""

import json
import os
import pathlib
import subprocess
import sys
import time
import unittest
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
JOBS = str(os.cpu_count() or 2)
FOLDERS = ("tests/scripts", "tests/python", "tests/web")
FILE_LIMIT_SECONDS = 1800
TEST_LIMIT_SECONDS = 1200
CAMPAIGN_LIMIT_SECONDS = 4 * 3600


def call(command, **options):
    print("$ " + " ".join(str(part) for part in command), flush=True)
    return subprocess.run(command, cwd=ROOT, check=False, **options)


def build(preset):
    """True when all of a preset was built; what can be built is built even where something fails."""
    configure = ["cmake", "--preset", preset, "-DBUILD_TESTING=ON"]
    if preset == "release" and "TOPSIM_FULL" in os.environ:
        configure.append("-DTOPSIM_BENCHMARKS=ON")  # so that they keep compiling; CTest runs each once
    make = ["cmake", "--build", f"build/{preset}", "-j", JOBS, "--", "-k", "0"]
    for step in (configure, make):
        done = call(step, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            print(f"FAILED: {' '.join(step)}\n{done.stdout[-6000:]}", flush=True)
            return False
    return True


# What may be missing where test.sh has installed everything: data of others, the long campaigns, and npm's chart library.
MAY_BE_MISSING = ("beside the project", "with --full", "has no page")


def excused(reason):
    """A skip is no failure where somebody runs this file by hand on a machine that lacks something."""
    return not os.environ.get("TOPSIM_ALL_INSTALLED") or any(words in reason for words in MAY_BE_MISSING)


def run_ctest(preset):
    """Returns (passed, failed, skipped) of one preset's C++ tests; a failed build counts as one failure."""
    passed, failed, skipped = 0, 0 if build(preset) else 1, 0
    report = ROOT / "build" / preset / "ctest.xml"
    report.unlink(missing_ok=True)
    limit = CAMPAIGN_LIMIT_SECONDS if "TOPSIM_FULL" in os.environ else TEST_LIMIT_SECONDS
    call(["ctest", "--test-dir", f"build/{preset}", "-j", JOBS, "--output-on-failure", "--no-tests=error", "--timeout",
          str(limit), "--output-junit", report, "-Q"], stdout=subprocess.DEVNULL)
    if not report.exists():
        print(f"FAILED: {preset}: no C++ test ran")
        return passed, failed + 1, skipped
    for case in xml.etree.ElementTree.parse(report).getroot().iter("testcase"):
        if case.get("status") == "run":
            passed += 1
        elif case.get("name").endswith("_NOT_BUILT"):
            failed += 1
            print(f"FAILED: {case.get('name')}")
        elif case.find("skipped") is not None or case.get("status") == "disabled":
            text = case.findtext("system-out", "")
            reason = text.partition("Skipped\n")[2].partition("\n[")[0].strip()
            if excused(reason):
                skipped += 1
            else:
                failed += 1
            print(f"{'skipped' if excused(reason) else 'FAILED, must not be skipped here'}: {case.get('name')}: {reason}")
        else:
            failed += 1
            print(f"FAILED: {case.get('name')}\n{case.findtext('system-out', '')}")
    print(f"{preset}: {passed} passed, {failed} failed, {skipped} skipped", flush=True)
    return passed, failed, skipped


class Counter(unittest.TextTestResult):
    """Counts tests, not their parts: a test with three failing subtests is one failure."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.passed = 0

    def addSuccess(self, test):  # pylint: disable=invalid-name
        super().addSuccess(test)
        self.passed += 1

    def counts(self):
        """[passed, failed, skipped]"""
        bad = {getattr(test, "test_case", test).id() for test, _ in self.failures + self.errors}
        bad |= {test.id() for test in self.unexpectedSuccesses}
        skips = {getattr(test, "test_case", test).id(): reason for test, reason in self.skipped}
        bad |= {test for test, reason in skips.items() if not excused(reason)}
        idle = set(skips) - bad
        return [self.passed + len(self.expectedFailures), len(bad), len(idle)]


def run_file(path, answer):
    """Runs one unittest file in this process and writes its counts to the file `answer`."""
    sys.path.insert(0, str(pathlib.Path(path).parent))
    suite = unittest.defaultTestLoader.loadTestsFromName(pathlib.Path(path).stem)
    result = unittest.TextTestRunner(resultclass=Counter, verbosity=1).run(suite)
    for test, reason in result.skipped:
        print(f"skipped: {test.id()}: {reason}")
    pathlib.Path(answer).write_text(json.dumps(result.counts()))


def run_unittest(path):
    """Returns (passed, failed, skipped) of one file; a file that ends in another way counts as one failure."""
    environment = dict(os.environ, PYTHONPATH=str(ROOT / "build/release/python"), PYTHONDONTWRITEBYTECODE="1",
                       PATH=f"{ROOT / 'build/release'}:{os.environ['PATH']}")
    answer = ROOT / "build" / "release" / f"{path.stem}.json"
    answer.unlink(missing_ok=True)
    began = time.monotonic()
    try:
        done = subprocess.run([sys.executable, __file__, "--file", path, answer], cwd=ROOT, env=environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=FILE_LIMIT_SECONDS, check=False)
        text, ended = done.stdout, done.returncode
    except subprocess.TimeoutExpired as late:
        text = (late.stdout or b"").decode(errors="replace") + f"\nnot done after {FILE_LIMIT_SECONDS} s"
        ended = "a time-out"
    counts = json.loads(answer.read_text()) if answer.exists() else [0, 1, 0]
    if ended != 0 and counts[1] == 0:
        counts[1] = 1
        text += f"\nthe tests' process ended with {ended}"
    if sum(counts) == 0:
        counts = [0, 1, 0]
        text += "\nno test in this file"
    passed, failed, skipped = counts
    if failed:
        print(f"FAILED: {path.relative_to(ROOT)}\n{text}")
    elif skipped:
        print("\n".join(line for line in text.splitlines() if line.startswith("skipped: ")))
    print(f"{path.relative_to(ROOT)}: {passed} passed, {failed} failed, {skipped} skipped"
          f" ({time.monotonic() - began:.0f} s)", flush=True)
    return passed, failed, skipped


def main(words):
    if words[:1] == ["--file"]:
        run_file(*words[1:])
        return 0
    chosen = [word for word in words if word != "--full"]
    if "--full" in words:
        os.environ["TOPSIM_FULL"] = "1"
    files = [path for folder in FOLDERS for path in sorted((ROOT / folder).glob("test_*.py"))]
    totals = []
    if chosen:
        files = [path for path in files if path.stem.removeprefix("test_") in chosen]
        if len(files) != len(set(chosen)):
            print(f"error: no such test file among {' '.join(chosen)}", file=sys.stderr)
            return 2
    else:
        totals.append(run_ctest("release"))
    totals += [run_unittest(path) for path in files]
    if "--full" in words and not chosen:
        del os.environ["TOPSIM_FULL"]
        totals += [run_ctest("asan"), run_ctest("tsan")]
    passed, failed, skipped = (sum(column) for column in zip(*totals))
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
