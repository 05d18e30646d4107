"""What is shipped in configs/ keeps its promises, and options that must not change an answer do not."""

import json
import unittest

import program

IB = "configs/8xH100-ib.json"
COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "alltoall", "sendrecv")
FEWER_THAN_LINES = 40


class Shipped(unittest.TestCase):
    def test_every_scenario_fits_on_a_screen_and_says_what_it_is(self):
        for path in program.SCENARIOS:
            with self.subTest(path.name):
                text = path.read_text()
                self.assertLess(len(text.splitlines()), FEWER_THAN_LINES)
                self.assertTrue(json.loads(text).get("description"))


class Folding(unittest.TestCase):
    def test_an_unfolded_run_takes_the_same_time_to_a_millionth(self):
        folded, unfolded = (json.loads(program.output("run", IB, "--format", "json", "--quiet", *words))
                            for words in ([], ["--no-fold"]))
        self.assertAlmostEqual(unfolded["step"]["seconds"] / folded["step"]["seconds"], 1, delta=1e-6)
        self.assertEqual(len(unfolded["ranks"]), 64)
        self.assertEqual(sum(rank["count"] for rank in folded["ranks"]), 64)

    def test_the_seed_is_in_the_result_and_the_same_seed_gives_the_same_bytes(self):
        first, again = (program.output("run", IB, "--seed", "7", "--format", "json", "--quiet") for _ in range(2))
        self.assertEqual(first, again)
        self.assertEqual(json.loads(first)["seed"], 7)


class Bench(unittest.TestCase):
    def rows(self, collective, scenario, network):
        return json.loads(program.output("bench", collective, scenario, "-b", "64K", "-e", "4M", "-f", "8", "--network",
                                         network, "--format", "json"))

    def test_every_collective_is_timed_on_every_network(self):
        for network in ("flow", "analytic", "packet"):
            for collective in COLLECTIVES:
                with self.subTest(f"{collective} on {network}"):
                    answer = self.rows(collective, "configs/16xA100-hdr.json", network)
                    self.assertEqual(answer["format"], "topsim.bench/1")
                    self.assertEqual([row["size"] for row in answer["rows"]], [65536, 524288, 4194304])
                    # Between sizes NCCL changes algorithm and protocol, not always for the better.
                    self.assertLess(answer["rows"][1]["time_us"], answer["rows"][2]["time_us"])
                    for row in answer["rows"]:
                        self.assertAlmostEqual(row["algbw"], row["size"] / row["time_us"] / 1e3, delta=1e-6 * row["algbw"])

    def test_bus_bandwidth_is_nccl_tests_factor_times_algorithm_bandwidth(self):
        # nccl-tests, doc/PERFORMANCE.md, 16 ranks.
        factors = {"all_reduce": 2 * 15 / 16, "all_gather": 15 / 16, "reduce_scatter": 15 / 16, "broadcast": 1,
                   "reduce": 1, "alltoall": 15 / 16, "sendrecv": 1}
        for collective in COLLECTIVES:
            with self.subTest(collective):
                for row in self.rows(collective, "configs/16xA100-hdr.json", "flow")["rows"]:
                    self.assertAlmostEqual(row["busbw"], factors[collective] * row["algbw"], delta=1e-6 * row["busbw"])


if __name__ == "__main__":
    unittest.main()
