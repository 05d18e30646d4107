"""What a comment or a README sends its reader to is there."""

import fnmatch
import re
import unittest

import program

FOLDERS = ("sim", "topology", "workloads", "python", "tests", "configs")
CODE = {".cpp": "//", ".hpp": "//", ".py": "#", ".sh": "#", ".cmake": "#", ".txt": "#", ".js": "//", ".in": "//"}
PAGE = re.compile(r"(?<![\w./>-])(?<!> )[\w./-]*\w\.md\b")  # not what a command writes: "> memo.md"
# Pages of other projects follow their repository, "owner/name, docs/page.md, other.md", or are these of a project by its name.
REPOSITORY = re.compile(r"[\w-]+/[\w.-]+(@\w+)?,? +([\w./-]+\.md,? +)*$")
ELSEWHERE = {"doc/en/install.md": "InternLM", "dist_optimizer.md": "Megatron", "doc/PERFORMANCE.md": "nccl-tests"}


def texts():
    """Comments of the sources and whole READMEs: (path, text)."""
    files = [program.ROOT / "README.md", program.ROOT / "CMakeLists.txt"]
    for folder in FOLDERS:
        files += sorted((program.ROOT / folder).rglob("*"))
    for path in files:
        if not path.is_file() or "node_modules" in path.parts:
            continue
        if path.name == "README.md":
            yield path, path.read_text()
        elif mark := CODE.get(path.suffix):
            parts = (line.partition(mark) for line in path.read_text().splitlines())
            yield path, " ".join(comment for _, found, comment in parts if found)


def is_there(path, page):
    return any((folder / page).is_file() for folder in [path.parent, *path.parents] if folder.is_relative_to(program.ROOT))


def stems():
    """(folder, stem, whether its README names it) of every source; a README may name a family as `part_*`."""
    for folder in ("sim", "topology", "workloads", "python/topsim"):
        for path in sorted((program.ROOT / folder).rglob("*")):
            if path.suffix not in (".cpp", ".hpp", ".py") or "node_modules" in path.parts or path.stem == "__init__":
                continue
            readme = next(each / "README.md" for each in path.parents if (each / "README.md").is_file())
            text = readme.read_text()
            prefixes = re.findall(r"\b(\w+)\*", text)
            named = re.search(rf"\b{path.stem}\b", text) or any(path.stem.startswith(prefix) for prefix in prefixes)
            yield path.relative_to(program.ROOT).parent, path.stem, bool(named)


def test_names():
    """Names of the C++ tests as gtest knows them; what INSTANTIATE_TEST_SUITE_P adds around a name is "Values/.../0"."""
    names = []
    for path in sorted((program.ROOT / "tests").rglob("*.cpp")):
        for kind, suite, name in re.findall(r"\bTEST(_[FP])?\(\s*(\w+),\s*(\w+)\s*\)", path.read_text()):
            names.append(f"Values/{suite}.{name}/0" if kind == "_P" else f"{suite}.{name}")
    return names


def gtest_filters():
    """(README, filter) of every part of a --gtest_filter; a page that speaks of them may list them as `Suite.Name*`."""
    for path, text in texts():
        if path.name == "README.md" and "--gtest_filter" in text:
            for word in re.findall(r"`(?:[^`\n]*--gtest_filter=)?([A-Z*][\w.*:/-]*)`", text):
                if "*" in word or f"--gtest_filter={word}" in text:
                    yield from ((path.relative_to(program.ROOT), part) for part in word.replace(":-", ":").split(":"))


class Documents(unittest.TestCase):
    maxDiff = None

    def test_every_gtest_filter_of_a_readme_matches_a_test(self):
        names, filters = test_names(), list(gtest_filters())
        self.assertGreater(len(filters), 10)
        unmatched = [f"{path}: {part}" for path, part in filters if not fnmatch.filter(names, part)]
        self.assertEqual(unmatched, [])

    def test_every_source_is_named_in_the_readme_of_its_folder(self):
        self.assertEqual(sorted({f"{folder}/{stem}" for folder, stem, named in stems() if not named}), [])

    def test_pages_that_comments_and_readmes_name_exist(self):
        missing, named = [], 0
        for path, text in texts():
            for found in PAGE.finditer(text):
                page, before = found.group(), text[max(0, found.start() - 200) : found.start()]
                named += 1
                project = ELSEWHERE.get(page)
                elsewhere = project in before if project else REPOSITORY.search(before)
                if not elsewhere and not is_there(path, page):
                    missing.append(f"{path.relative_to(program.ROOT)}: {page}")
        self.assertGreater(named, 50)
        self.assertEqual(missing, [])


if __name__ == "__main__":
    unittest.main()
