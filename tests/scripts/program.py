"""Runs the built program, for the tests beside this file."""

import functools
import json
import os
import pathlib
import resource
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / "build" / "release"
TOPSIM = os.environ.get("TOPSIM", str(BUILD / "topsim"))
SCENARIOS = sorted((ROOT / "configs").glob("*.json"))
LIMIT_SECONDS = 600


def environment(**changes):
    """The caller's environment without what changes the output; a value of None removes a variable."""
    clean = {key: value for key, value in os.environ.items()
             if key not in ("COLUMNS", "NO_COLOR", "TOPSIM_CONFIG_PATH")}
    clean.update(changes)
    return {key: value for key, value in clean.items() if value is not None}


def topsim(*words, cwd=ROOT, env=None, program=TOPSIM, limits=None):
    """Returns the finished process with .returncode, .stdout and .stderr as text. `limits`: RLIMIT_* -> most."""
    def apply():
        for limit, most in {resource.RLIMIT_CORE: 0, **limits}.items():
            resource.setrlimit(limit, (most, most))

    return subprocess.run([program, *map(str, words)], cwd=cwd, env=env or environment(), text=True,
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT_SECONDS, check=False,
                          preexec_fn=apply if limits else None)


def output(*words, **options):
    """Standard output of a run that must succeed."""
    done = topsim(*words, **options)
    if done.returncode:
        raise AssertionError(f"topsim {' '.join(map(str, words))}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout


@functools.lru_cache(maxsize=None)
def result_text(scenario):
    """The bytes of a shipped scenario's result; simulated once for all tests of a process."""
    return output("run", scenario, "--format", "json", "--quiet")


def result(scenario):
    return json.loads(result_text(scenario))


def temporary_folder():
    return tempfile.TemporaryDirectory(prefix="topsim-test-")
