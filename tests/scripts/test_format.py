"""C++ files are formatted as .clang-format says."""

import re
import shutil
import subprocess
import unittest

import program

FOLDERS = ("sim", "topology", "workloads", "python", "tests")
VERSION = "14"  # Debian 12's; other versions break lines elsewhere


class Format(unittest.TestCase):
    def test_every_cpp_file_is_formatted(self):
        tool = shutil.which(f"clang-format-{VERSION}") or shutil.which("clang-format")
        if tool is None:
            self.skipTest("clang-format is not installed")
        said = subprocess.run([tool, "--version"], capture_output=True, text=True, check=True).stdout
        if re.search(r"version (\d+)", said).group(1) != VERSION:
            self.skipTest(f"clang-format {VERSION} is not installed")
        files = [path for folder in FOLDERS for ending in ("*.cpp", "*.hpp")
                 for path in sorted((program.ROOT / folder).rglob(ending)) if "node_modules" not in path.parts]
        self.assertGreater(len(files), 100)
        done = subprocess.run([tool, "--dry-run", "--Werror", *files], capture_output=True, text=True, check=False)
        unformatted = sorted({line.split(":")[0] for line in done.stderr.splitlines() if ": error:" in line})
        self.assertEqual(unformatted, [])
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
