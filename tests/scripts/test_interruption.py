"""Ctrl-C: what was done until then is printed, and says so."""

import json
import pathlib
import signal
import subprocess
import time
import unittest

import program

IB = "configs/8xH100-ib.json"


class Interruption(unittest.TestCase):
    def interrupted(self, *words, after=2):
        """Exit code, standard output and standard error of a command that gets Ctrl-C after so many seconds."""
        child = subprocess.Popen([program.TOPSIM, *words], cwd=program.ROOT, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=program.environment())
        time.sleep(after)
        self.assertIsNone(child.poll(), "the command is too quick to be interrupted")
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=60)
        self.assertIn("interrupted", err)
        return child.returncode, out, err

    def test_what_was_done_until_then_is_printed_and_marked(self):
        seeds = ",".join(map(str, range(1, 2001)))
        for words in (["bench", "all_reduce", IB, "--network", "packet", "-b", "8", "-e", "8G"],
                      ["bench", "p2p", IB, "-b", "2", "-e", "1G", "-f", "1.01"],
                      ["bench", "all_to_all", IB, "--set", "topology.nodes=32", "-b", "64M"],
                      ["compare", IB, "configs/8xH100-roce.json", "--seeds", "100000"],
                      ["sweep", IB, "--vary", "run.seed=" + seeds],
                      ["plan", IB, "--exhaustive"],
                      ["validate"]):
            with self.subTest(words[:2]):
                code, out, err = self.interrupted(*words, "--format", "json")
                self.assertEqual(code, 130, err)
                self.assertIs(json.loads(out)["complete"], False)

    def test_a_comparison_leaves_out_what_has_no_step_yet(self):
        code, out, err = self.interrupted("compare", "configs/1xH100.json", "configs/32xH100-ib.json", IB, "--network",
                                          "packet", "--seeds", "1", "--jobs", "1", "--set", "run.steps=40", "--format",
                                          "json", after=4)
        self.assertEqual(code, 130, err)
        self.assertRegex(err, "[012] of 3 candidates")
        if out:  # the quick ones may have been done
            self.assertNotIn("8xH100-ib", json.loads(out)["names"])

    def test_an_explanation_is_of_the_steps_there_are(self):
        with program.temporary_folder() as folder:
            program.output("run", IB, "--out", folder)
            written = pathlib.Path(folder) / "result.json"
            result = json.loads(written.read_text())
            result["scenario"]["run"]["steps"] = 10000  # what is simulated again takes its time
            written.write_text(json.dumps(result))
            code, out, err = self.interrupted("explain", folder, "--format", "json", after=1)
            self.assertEqual(code, 130, err)
            explained = json.loads(out)
            self.assertIs(explained["complete"], False)
            self.assertEqual(explained["step_seconds"], result["step"]["seconds"])
        code, out, err = self.interrupted("explain", IB, "--network", "packet")
        self.assertEqual((code, out), (130, ""), err)

    def test_what_has_no_part_that_is_worth_printing_ends_at_once(self):
        # 16384 x 16384 messages are listed before the first row.
        for words in (["calibrate"], ["bench", "victim", "configs/8xH100-roce.json", "--window", "1 s"],
                      ["bench", "alltoall", "configs/16384xH100-llama3-405b.json", "-b", "1G", "--network", "packet"]):
            with self.subTest(words[:2]):
                self.assertEqual(self.interrupted(*words, after=0.5), (130, "", "interrupted\n"))

    def test_a_run_that_has_not_begun_its_steps_ends_at_once(self):
        begin = time.monotonic()
        words = ["run", "configs/131072xH100-llama3-405b.json", "--no-fold"]  # more than ten seconds of preparation
        self.assertEqual(self.interrupted(*words, after=1), (130, "", "interrupted\n"))
        self.assertLess(time.monotonic() - begin, 5)

    def test_so_does_one_of_very_many_ranks_as_long_as_no_step_has_ended(self):
        words = ["run", "configs/131072xH100-llama3-405b.json", "--no-fold", "--set", "topology.nodes=4096", "--set",
                 "workload.plan.dp=256", "--set", "workload.plan.global_batch=4096", "--progress", "json"]
        child = subprocess.Popen([program.TOPSIM, *words], cwd=program.ROOT, stdin=subprocess.DEVNULL, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=program.environment())
        for line in child.stderr:  # the first progress with an op done: it simulates
            if json.loads(line)["progress"]["share"] > 0:
                break
        child.send_signal(signal.SIGINT)
        begin = time.monotonic()
        out, err = child.communicate(timeout=60)
        self.assertLess(time.monotonic() - begin, 2)
        self.assertEqual((child.returncode, out, err.splitlines()[-1]), (130, "", "interrupted"))

    def test_a_second_one_ends_at_once(self):
        child = subprocess.Popen([program.TOPSIM, "validate"], cwd=program.ROOT, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=program.environment())
        time.sleep(1)
        child.send_signal(signal.SIGSTOP)  # so that both are there before it can answer the first
        child.send_signal(signal.SIGINT)
        child.send_signal(signal.SIGTERM)
        child.send_signal(signal.SIGCONT)
        out, err = child.communicate(timeout=60)
        self.assertEqual((child.returncode, out, err), (130, "", "interrupted\n"))

    def test_an_interrupted_run_leaves_a_valid_partial_result(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(number), program.temporary_folder() as folder:
                child = subprocess.Popen(
                    [program.TOPSIM, "run", "configs/32xH100-ib.json", "--no-fold", "--set", "run.steps=10000", "--set",
                     "run.warmup=0", "--out", folder, "--format", "json"],
                    cwd=program.ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                    text=True, env=program.environment())
                time.sleep(3)
                self.assertIsNone(child.poll(), "the scenario is too short to be interrupted")
                child.send_signal(number)
                out, err = child.communicate(timeout=program.LIMIT_SECONDS)
                self.assertEqual(child.returncode, 130, err)
                self.assertIn("partial", err)
                written = json.loads((pathlib.Path(folder) / "result.json").read_text())
                self.assertEqual(written["format"], "topsim.result/1")
                self.assertIs(written["complete"], False)
                self.assertLess(len(written["step"]["per_step"]), 10000)
                self.assertEqual(json.loads(out), written)


if __name__ == "__main__":
    unittest.main()
