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

    def test_a_room_of_sim_needs_only_those_above_it_in_its_list(self):
        order = re.findall(r"^\| \[(\w+)\]", (program.ROOT / "sim/README.md").read_text(), re.MULTILINE)
        self.assertEqual(set(order), {path.name for path in (program.ROOT / "sim").iterdir() if path.is_dir()})
        wrong = []
        for path, headers in sources():
            rooms = [name.split("/")[1] for name in (path, *headers) if name.startswith("sim/")]
            if path.startswith("sim/"):
                wrong += [f"{path} includes {room}" for room in rooms if order.index(room) > order.index(rooms[0])]
        self.assertEqual(wrong, [])


if __name__ == "__main__":
    unittest.main()
