"""Candidates side by side, and collectives alone."""

import json
import os
import pickle
import subprocess
import sys
import tempfile
import unittest

import topsim
from small import two_boxes, written_page


class Compare(unittest.TestCase):
    def setUp(self):
        self.fast, self.slow = two_boxes(), two_boxes()
        self.slow["topology"]["fabric"]["link"] = "ib-hdr"

    def test_results_are_compared_as_they_are(self):
        fast, slow = topsim.run(self.fast), topsim.run(self.slow)
        comparison = topsim.compare(fast, slow)
        step = comparison.rows[comparison.rows["metric"].index("step.seconds")]
        for name, result in zip(comparison.names, (fast, slow)):
            self.assertAlmostEqual(step[name], result.step_seconds, delta=1e-12)
        # Half the bandwidth between the boxes cannot be faster.
        self.assertGreater(slow.step_seconds, fast.step_seconds)
        self.assertAlmostEqual(step[f"{comparison.names[1]} relative"], slow.step_seconds / fast.step_seconds - 1, places=12)
        self.assertEqual([each.to_json() for each in comparison.results], [fast.to_json(), slow.to_json()])
        self.assertEqual(comparison.to_dict()["format"], "topsim.compare/1")
        self.assertIn(comparison.verdict.split()[0], repr(comparison))
        self.assertIn("step time", comparison._repr_html_())
        self.assertIn("<td>step.seconds</td>", comparison._repr_html_())

    def test_scenarios_are_simulated_with_the_same_answer(self):
        comparison = topsim.compare(self.fast, self.slow, seeds=2)
        self.assertEqual([each.step_seconds for each in comparison.results],
                         [topsim.run(each).step_seconds for each in (self.fast, self.slow)])

    def test_the_same_twice_does_not_differ(self):
        result = topsim.run(self.fast)
        self.assertIn("take the same step time", topsim.compare(result, result).verdict)

    def test_pickles(self):
        comparison = topsim.compare(topsim.run(self.fast), self.slow)
        self.assertEqual(pickle.loads(pickle.dumps(comparison)), comparison)
        self.assertNotEqual(comparison, topsim.compare(topsim.run(self.slow), self.fast))
        explanation = topsim.explain(self.fast)
        self.assertEqual(pickle.loads(pickle.dumps(explanation)), explanation)

    def test_writes_its_page(self):
        comparison = topsim.compare(topsim.run(self.fast), topsim.run(self.slow))
        with written_page(self, comparison.html) as (page, result):
            self.assertEqual(result["verdict"], comparison.to_dict()["verdict"])
            self.assertIn(" or ".join(comparison.names), page)

    def test_a_list_and_files_of_results_will_do(self):
        result = topsim.run(self.fast)
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "result.json")
            result.save(file)
            for candidates in ([file, result], [folder, result], [[result, file]], [[os.fsencode(file), result]]):
                self.assertIn("take the same step time", topsim.compare(*candidates).verdict)
        comparison = topsim.compare(result, result)
        self.assertEqual(json.loads(comparison.to_json()), comparison.to_dict())

    def test_a_candidate_that_does_not_fit_is_told_first(self):
        # Four tensor ranks hold twice as much each as eight, and these hold more than half of 80 GiB.
        large = topsim.run("8xH100-ib", allow_oom=True, **{"workload.plan.tp": 4, "workload.plan.dp": 8})
        self.assertFalse(large.fits)
        self.assertGreater(large.memory_bytes, large.memory_capacity_bytes)
        said = "DOES NOT FIT the memory: 104 GiB of 80.0 GiB"
        self.assertIn(said, repr(large))
        self.assertIn(said, large._repr_html_())
        fits = topsim.run("8xH100-ib")
        self.assertTrue(fits.fits)
        self.assertNotIn("FIT", repr(fits))
        self.assertEqual(topsim.compare(fits, large).verdict.split("\n")[0], f"8xH100-ib #2 {said}")
        self.assertNotIn("FIT", topsim.compare(fits, fits).verdict)

    def test_one_is_not_enough(self):
        with self.assertRaisesRegex(ValueError, "at least two"):
            topsim.compare(self.fast)


class Bench(unittest.TestCase):
    def test_rows_follow_nccl_tests(self):
        bench = topsim.bench("all_reduce", two_boxes(), first="1K", last="1M", factor=4)
        self.assertEqual(bench["size"], [1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20])
        for row in bench:
            # algbw is size over time; busbw of an all-reduce over n = 16 ranks is 2 (n - 1) / n of it.
            self.assertAlmostEqual(row["algbw"], row["size"] / row["time_us"] / 1e3, places=9)
            self.assertAlmostEqual(row["busbw"], row["algbw"] * 2 * 15 / 16, places=9)
        self.assertIn("out-of-place", str(bench))
        self.assertEqual(pickle.loads(pickle.dumps(bench)), bench)

    def test_control_c_stops_it_while_messages_are_listed(self):
        # 16384 x 16384 of them take minutes. A shell that starts tests in the background has them ignore SIGINT.
        script = ("import signal, threading, topsim\n"
                  "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
                  "threading.Timer(3, lambda: signal.raise_signal(signal.SIGINT)).start()\n"
                  "try:\n    topsim.bench('alltoall', '16384xH100-llama3-405b', network='packet', first='1G')\n"
                  "except KeyboardInterrupt:\n    print('stopped')\n")
        ran = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, timeout=60,
                             check=True)
        self.assertEqual(ran.stdout, "stopped\n")

    def test_choices_can_be_forced(self):
        bench = topsim.bench("all_reduce", two_boxes(), first="1M", last="1M", algorithm="ring", protocol="simple")
        self.assertEqual((bench[0]["algorithm"], bench[0]["protocol"]), ("Ring", "Simple"))

    def test_mistakes_have_remedies(self):
        with self.assertRaises(topsim.ConfigError) as caught:
            topsim.bench("allreduce", two_boxes())
        self.assertIn("all_reduce", caught.exception.help)
        with self.assertRaises(topsim.ConfigError):
            topsim.bench("all_reduce", two_boxes(), first="many")
        with self.assertRaisesRegex(ValueError, "at least 1.01"):
            topsim.bench("all_reduce", two_boxes(), factor=1)
        for channels in (-1, 65, 10**6, 10**12):
            with self.assertRaisesRegex(topsim.ConfigError, "NCCL has 1 to 64"):
                topsim.bench("all_reduce", two_boxes(), channels=channels)
        for forced in ({"algorithm": "tree"}, {"protocol": "ll"}, {"channels": 2}):
            with self.assertRaisesRegex(topsim.ConfigError, "has no effect on alltoall"):
                topsim.bench("alltoall", two_boxes(), **forced)
        with self.assertRaisesRegex(topsim.ConfigError, "first is more than last"):
            topsim.bench("all_reduce", two_boxes(), first="4M", last="1M")


if __name__ == "__main__":
    unittest.main()
