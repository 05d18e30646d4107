"""One direction: a file includes headers of its own folder and of those before it, as CMakeLists.txt and sim/README.md say."""

import re
import unittest

import program

INCLUDE = re.compile(r'^#include "([^"]+/[^"]+)"', re.MULTILINE)
# topsim_room(topsim_topology FOLDERS topology LINK topsim_base Boost::headers)
ROOM = re.compile(r"^topsim_room\((\w+)\s+(?:ALONE\s+)?FOLDERS ([^)]*?)\s+(?:EXCLUDE ([^)]*?)\s+)?LINK ([^)]*)\)", re.MULTILINE)


def sources():
    for folder in ("sim", "topology", "workloads"):
        for path in sorted((program.ROOT / folder).rglob("*.[ch]pp")):
            if "node_modules" not in path.parts:
                yield str(path.relative_to(program.ROOT)), INCLUDE.findall(path.read_text())


def folder_of(path, folders):
    """The longest of the folders that holds it."""
    holds = [folder for folder in folders if path.startswith(folder + "/")]
    return max(holds, key=len, default=None)


class Rooms(unittest.TestCase):
    def test_a_target_includes_only_what_it_links(self):
        room_of, links = {}, {}
        for name, folders, _, linked in ROOM.findall((program.ROOT / "CMakeLists.txt").read_text()):
            room_of.update(dict.fromkeys(folders.split(), name))
            links[name] = [other for other in linked.split() if other.startswith("topsim_")]
        self.assertEqual(len(links), 6)

        def seen_by(room):
            return {room}.union(*(seen_by(other) for other in links[room]))

        wrong, read = [], 0
        for path, headers in sources():
            room = room_of.get(folder_of(path, room_of))
            for header in headers if room else ():
                other = room_of.get(folder_of(header, room_of))
                read += other is not None
                if other and other not in seen_by(room):
                    wrong.append(f"{path} of {room} includes {header} of {other}")
        self.assertGreater(read, 1000)
        self.assertEqual(wrong, [])

    def test_a_folder_needs_only_those_above_it_in_the_list_of_its_readme(self):
        for parent in ("sim", "sim/scenario"):
            readme = (program.ROOT / parent / "README.md").read_text()
            order = re.findall(r"^\| \[(\w+)\]", readme, re.MULTILINE)
            self.assertEqual(set(order), {path.name for path in (program.ROOT / parent).iterdir() if path.is_dir()})
            place = {f"{parent}/{name}": at for at, name in enumerate(order)}
            wrong, read = [], 0
            for path, headers in sources():
                # A file beside the folders is below them all: each may use it, and it uses none.
                own = place.get(folder_of(path, place), -1) if path.startswith(parent + "/") else None
                used = [folder_of(header, place) for header in headers] if own is not None else []
                read += len(used)
                wrong += [f"{path} includes {folder}" for folder in used if folder and place[folder] > own]
            self.assertGreater(read, 100)
            self.assertEqual(wrong, [])


if __name__ == "__main__":
    unittest.main()
