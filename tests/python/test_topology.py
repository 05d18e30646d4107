"""Topologies to look at and to hand on."""

import os
import pickle
import tempfile
import unittest
import xml.etree.ElementTree

import topsim
from small import two_boxes

try:
    import networkx
except ImportError:
    networkx = None


class Topology(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.topology = topsim.Topology(two_boxes())

    def test_counts(self):
        self.assertEqual((self.topology.nodes, self.topology.accelerators), (2, 16))
        self.assertEqual(self.topology.devices["kind"].count("accelerator"), 16)
        self.assertIn("16 accelerators", repr(self.topology))

    def test_every_cable_has_two_directions(self):
        ends = list(zip(self.topology.links["from"], self.topology.links["to"]))
        self.assertEqual(sorted(ends), sorted((to, start) for start, to in ends))

    def test_loads_scenarios_nodes_and_its_own_file(self):
        self.assertEqual(topsim.Topology("configs/8xH100-ib.json").accelerators, 64)
        self.assertEqual(topsim.Topology("configs/8xH100-ib.json", **{"topology.nodes": 2}).accelerators, 16)
        self.assertEqual(topsim.Topology.load("dgx-h100").accelerators, 8)
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "cluster.json")
            with open(file, "w", encoding="utf-8") as out:
                out.write(self.topology.to_json())
            self.assertEqual(topsim.Topology(file).to_json(), self.topology.to_json())
            scenario = two_boxes()
            scenario["topology"] = {"file": file}
            self.assertEqual(topsim.run(scenario).step_seconds, topsim.run(two_boxes()).step_seconds)

    def test_a_cluster_alone_is_looked_at_and_measured_but_not_run(self):
        alone = {"topology": two_boxes()["topology"]}
        self.assertEqual(topsim.Topology(alone).to_json(), self.topology.to_json())
        measured = [list(topsim.bench("all_reduce", source, first="1M", last="1M")["busbw"]) for source in (alone, two_boxes())]
        self.assertEqual(*measured)
        with self.assertRaisesRegex(topsim.ConfigError, "workload"):
            topsim.run(alone)

    def test_draws_svg(self):
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "cluster.svg")
            drawing = self.topology.draw(file)
            self.assertTrue(xml.etree.ElementTree.fromstring(drawing).tag.endswith("svg"))
            self.assertEqual(drawing._repr_svg_(), drawing)
            with open(file, encoding="utf-8") as read:
                self.assertEqual(read.read(), drawing)

    def test_draws_what_the_name_of_the_file_says_and_nothing_else(self):
        with tempfile.TemporaryDirectory() as folder:
            dot = os.path.join(folder, "cluster.dot")
            self.topology.draw(dot)
            with open(dot, encoding="utf-8") as read:
                self.assertEqual(read.read(), self.topology.to_dot())
            with self.assertRaisesRegex(ValueError, r"\.png.*\.svg.*\.dot"):
                self.topology.draw(os.path.join(folder, "cluster.png"))
            self.assertEqual(os.listdir(folder), ["cluster.dot"])

    def test_other_formats(self):
        self.assertIn("graph", self.topology.to_dot())
        self.assertEqual(xml.etree.ElementTree.fromstring(self.topology.to_nccl_xml(1)).tag, "system")
        self.assertIn("leaf", str(self.topology))
        self.assertTrue(all(finding["severity"] != "error" for finding in self.topology.check()))

    def test_equal_content_is_equal_and_saved_files_load(self):
        other = topsim.Topology("dgx-h100")
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "cluster.json")
            self.topology.save(file)
            self.assertEqual(topsim.Topology(file), self.topology)
            self.assertEqual(hash(topsim.Topology(file)), hash(self.topology))
        self.assertNotEqual(self.topology, other)
        self.assertEqual(len({self.topology, other, topsim.Topology("dgx-h100")}), 2)

    def test_the_bill_counts_what_the_cluster_is_built_of(self):
        quoted = two_boxes()
        quoted["cost"] = {"prices": {"hgx-h100": "200000 USD"}}
        for bill in (topsim.Topology(quoted).bom(), pickle.loads(pickle.dumps(topsim.Topology(quoted))).bom()):
            server = next(row for row in bill if row["category"] == "server")
            self.assertEqual((server["id"], server["count"], server["usd_each"]["usual"]), ("hgx-h100", 2, 200000))
            self.assertEqual(bill.to_dict()["format"], "topsim.bom/1")
            self.assertIn("hgx-h100", bill.to_csv())
        one = topsim.Topology("dgx-h100").bom()
        self.assertEqual([row["count"] for row in one if row["category"] == "server"], [1])

    def test_pickles(self):
        self.assertEqual(pickle.loads(pickle.dumps(self.topology)).to_json(), self.topology.to_json())

    @unittest.skipIf(networkx is None, "networkx is not installed")
    def test_networkx_has_the_devices_and_links(self):
        graph = self.topology.to_networkx()
        self.assertEqual(graph.number_of_nodes(), len(self.topology.devices))
        self.assertEqual(graph.number_of_edges(), len(self.topology.links))
        self.assertTrue(networkx.is_strongly_connected(graph))
        (edge,) = graph["node0/gpu0"]["node0/nvswitch0"].values()
        # Eighteen NVLink 4 of 25 GB/s each way: NVIDIA H100 data sheet, 900 GB/s both ways together.
        self.assertEqual((edge["kind"], edge["line_rate"]), ("nvlink", 18 * 25e9))


if __name__ == "__main__":
    unittest.main()
