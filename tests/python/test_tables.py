"""Tables of a result: rows, columns, frames, pictures."""

import csv
import io
import math
import pickle
import unittest

import topsim
from small import two_boxes

try:
    import pandas
except ImportError:
    pandas = None
try:
    import matplotlib
    matplotlib.use("Agg")
except ImportError:
    matplotlib = None


class Tables(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.result = topsim.run(two_boxes())
        cls.document = cls.result.to_dict()

    def test_rows_and_columns_are_those_of_result_json(self):
        for name in ("links", "collectives", "critical_path", "findings"):
            table = getattr(self.result, name)
            self.assertEqual(list(table), self.document[name], name)
            self.assertEqual(len(table), len(self.document[name]))
        self.assertEqual(self.result.links["bytes"], [row["bytes"] for row in self.document["links"]])
        self.assertEqual(self.result.links[-1], self.document["links"][-1])
        self.assertEqual(self.result.links[:2], self.document["links"][:2])

    def test_any_rank_and_any_link_can_be_asked_for(self):
        ranks = [self.result.rank(rank) for rank in range(self.document["accelerators"]["count"])]
        self.assertEqual([one["rank"] for one in ranks], list(range(len(ranks))))
        # A class of n has n members with 1/n each.
        self.assertAlmostEqual(sum(1 / one["alike"] for one in ranks), len(self.document["ranks"]))
        first = self.document["links"][0]
        self.assertEqual(self.result.link(first["id"])["bytes"], first["bytes"])
        with self.assertRaises(topsim.ConfigError):
            self.result.rank(10 ** 6)
        with self.assertRaises(topsim.ConfigError):
            self.result.link("nowhere -> nobody")

    def test_nested_objects_become_columns(self):
        self.assertEqual(self.result.ranks["idle_seconds.data_parallel"],
                         [row["idle_seconds"]["data_parallel"] for row in self.document["ranks"]])

    def test_unknown_columns_and_rows_are_refused(self):
        with self.assertRaisesRegex(KeyError, "columns: id, count"):
            self.result.links["bandwidth"]
        with self.assertRaises(IndexError):
            self.result.links[len(self.result.links)]

    def test_columns_are_chosen_and_asked_for_by_name(self):
        links = self.result.links
        chosen = links[["id", "kind"]]
        self.assertEqual(chosen.columns, ["id", "kind"])
        self.assertEqual(chosen["kind"], links["kind"])
        self.assertIn("id", links)
        self.assertNotIn("bandwidth", links)
        self.assertIn(links[1], links)
        for wrong in (1.5, None, ("id", "kind")):
            with self.assertRaisesRegex(TypeError, "columns by name"):
                links[wrong]

    def test_csv_reads_back_the_same(self):
        rows = list(csv.DictReader(io.StringIO(self.result.links.to_csv())))
        self.assertEqual([row["id"] for row in rows], self.result.links["id"])
        self.assertEqual([float(row["utilization"]) for row in rows], self.result.links["utilization"])
        summary = {row["metric"]: row["value"] for row in csv.DictReader(io.StringIO(self.result.to_csv()))}
        self.assertEqual(float(summary["step.seconds"]), self.result.step_seconds)

    def test_text_and_html_name_the_columns(self):
        self.assertIn("peak_utilization", repr(self.result.links))
        self.assertIn("<th>peak_utilization</th>", self.result.links._repr_html_())

    def test_the_timeline_covers_what_the_accounts_say(self):
        # One measured step, which begins where the first row does: idle intervals of a rank sum to its account.
        idle = self.result.idle
        for row in self.document["ranks"]:
            total = math.fsum(end - begin for rank, begin, end in zip(idle["rank"], idle["begin"], idle["end"])
                              if rank == row["rank"])
            self.assertAlmostEqual(total, sum(row["idle_seconds"].values()), delta=1e-9)

    def test_timeline_rows_are_in_order_and_named(self):
        row = self.result.timeline[0]
        self.assertEqual(row["device"], "node0/gpu0")
        self.assertEqual(row["stream"], "compute")
        self.assertTrue(all(begin <= ready <= end for begin, ready, end in zip(
            *(self.result.timeline[key] for key in ("begin", "ready", "end")))))

    def test_tables_pickle(self):
        for table in (self.result.links, self.result.timeline, self.result.idle):
            self.assertEqual(pickle.loads(pickle.dumps(table)), table)

    @unittest.skipIf(pandas is None, "pandas is not installed")
    def test_frames_hold_the_values_of_result_json(self):
        for name in ("links", "collectives", "critical_path", "findings"):
            frame = getattr(self.result, name).to_pandas()
            self.assertEqual(frame.to_dict("records"), self.document[name], name)
        busiest = self.result.links.to_pandas().nlargest(1, "utilization").iloc[0]
        self.assertEqual(busiest["utilization"], max(row["utilization"] for row in self.document["links"]))

    @unittest.skipIf(pandas is None, "pandas is not installed")
    def test_frames_of_the_timeline_share_its_memory(self):
        import numpy
        timeline = self.result.timeline
        frame = timeline.to_pandas()
        self.assertTrue(numpy.shares_memory(frame["begin"].to_numpy(), numpy.asarray(timeline["begin"])))
        self.assertEqual(frame["what"].tolist(), list(timeline["what"]))
        self.assertEqual(frame["end"].tolist(), list(timeline["end"]))

    @unittest.skipIf(matplotlib is None, "matplotlib is not installed")
    def test_pictures_show_the_figures(self):
        from matplotlib import pyplot
        bars = [patch.get_width() for patch in self.result.plot_idle().patches]
        self.assertEqual(bars, [seconds for seconds in (self.result.busy_seconds, *self.result.idle_seconds.values())
                                if seconds > 0])
        widths = {patch.get_width() for patch in self.result.plot_links().patches}
        self.assertIn(self.document["links"][0]["utilization"], widths)
        labels = [label.get_text() for label in self.result.plot_timeline().get_yticklabels()]
        self.assertEqual(len(labels), len(self.document["ranks"]))
        pyplot.close("all")


if __name__ == "__main__":
    unittest.main()
