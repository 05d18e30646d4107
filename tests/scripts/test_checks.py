"""--fail-if: what a script asks of a run or a comparison, and the exit code that answers."""

import unittest

import program

IB = "configs/8xH100-ib.json"


class Checks(unittest.TestCase):
    def code(self, *words):
        return program.topsim(*words).returncode

    def test_one_when_a_requested_check_fails(self):
        done = program.topsim("run", IB, "--fail-if", "step_time > 1 ms")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"failed: step_time > 1 ms \(step.seconds is [\d.]+ s, the limit 1.00 ms\)")
        self.assertIn("step time", done.stdout)
        self.assertEqual(self.code("run", IB, "--fail-if", "step_time > 1 h"), 0)

    def test_a_percentage_of_a_share_is_a_difference_in_compare_which_says_so(self):
        # MFU is about 42 % on either seed: as a difference less than 40 %, as a value more.
        words = ["compare", IB, "--with", "run.seed=2", "--seeds", "1", "--no-cost", "--quiet", "--fail-if"]
        done = program.topsim(*words, "mfu < 40 %")
        self.assertEqual(done.returncode, 1)
        self.assertIn("here 40 % is a difference to the baseline; for the share itself write 0.4", done.stderr)
        self.assertEqual(self.code(*words, "mfu < 0.4"), 0)
        # The other way round it passes, and says just as much how it was read; a share below 0 is no share.
        done = program.topsim(*words, "mfu > 40 %")
        self.assertEqual(done.returncode, 0)
        self.assertIn("for the share itself write 0.4", done.stderr)
        self.assertNotIn("hint", program.topsim(*words, "mfu < -2 %").stderr)
        self.assertEqual(self.code("run", IB, "--quiet", "--fail-if", "mfu < 40 %"), 0)

    def test_something_where_the_baseline_has_nothing_is_more_than_any_percentage(self):
        # One stage has no bubble, two have.
        words = ["compare", IB, "--set", "workload.plan.pp=1", "--set", "workload.plan.dp=null",
                 "--with", "workload.plan.pp=2", "--seeds", "1", "--no-cost", "--allow-oom", "--fail-if"]
        key = "accelerators.idle_seconds.pipeline_bubble"
        done = program.topsim(*words, f"{key} > 5 %")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("where the baseline has none", done.stderr)
        self.assertEqual(self.code(*words, f"{key} < -5 %"), 0)

    def test_a_row_of_a_comparison_can_be_the_check(self):
        words = ["compare", IB, "--with", "topology.fabric.link=ib-hdr", "--seeds", "1", "--no-cost", "--fail-if"]
        done = program.topsim(*words, "collectives.pipeline.sendrecv.16777216.bus_bandwidth < -10 %")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"ib-hdr: [\d.]+ GB/s, -[\d.]+ % to the baseline's [\d.]+ GB/s")
        self.assertEqual(self.code(*words, "links.fabric.utilization > 200 %"), 0)
        done = program.topsim(*words, "collectives.pipeline.sendrecv.1.bus_bandwidth < -10 %")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("rows of its kind: ", done.stderr)


if __name__ == "__main__":
    unittest.main()
