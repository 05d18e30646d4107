"""What commands read, and how files are told apart."""

import json
import pathlib
import subprocess
import tempfile
import unittest

import program

IB = "configs/8xH100-ib.json"


class Inputs(unittest.TestCase):
    def shell(self, command, folder=program.ROOT):
        return subprocess.run(["bash", "-c", command.replace("topsim", str(program.TOPSIM))], cwd=folder, text=True,
                              capture_output=True, check=False)

    def test_what_can_be_read_once_only_is_read_once(self):
        wanted = program.output("run", IB, "--format", "json")
        done = self.shell(f"cat {IB} | topsim run - --format json")
        self.assertEqual(json.loads(done.stdout)["step"], json.loads(wanted)["step"])
        self.assertEqual(json.loads(done.stdout)["name"], "stdin")
        for command in (f"topsim compare <(cat {IB}) {IB} --seeds 2", f"topsim explain <(cat {IB})",
                        f"topsim sweep <(cat {IB}) --vary run.seed=1,2"):
            with self.subTest(command):
                done = self.shell(command + " --quiet")
                self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_mistakes_of_options_are_said_in_words_of_ours(self):
        for words, said in ((("--rank", "abc"), '"abc" is no value for --rank, which takes a number'),
                            (("--seed", "abc"), '"abc" is no seed for --seed\n   = a whole number from 0 to'),
                            (("--seed", "-1"), '"-1" is no seed for --seed'),
                            (("--seed", "1.5"), '"1.5" is no seed for --seed'),
                            (("--fail-if", "mfu < 1 %", "--fail-if", "mfu > 1 %"), "--fail-if can be given once")):
            done = program.topsim("run", IB, *words)
            self.assertEqual(done.returncode, 2)
            self.assertIn(said, done.stderr)

    def test_a_missing_scenario_is_looked_for_among_those_beside_it(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "roce.json").write_text("{}")
            for word in ("roce.jsn", "roc.json", folder + "/rocee.json"):
                self.assertIn("roce.json?", self.shell(f"topsim run {word}", folder).stderr)

    def test_the_echo_of_a_result_says_nothing_that_nobody_wrote(self):
        with tempfile.TemporaryDirectory() as folder:
            echo = pathlib.Path(folder) / "echo.json"
            result = json.loads(program.output("run", IB, "--format", "json"))
            echo.write_text(json.dumps(result["scenario"]))
            again = json.loads(program.output("run", echo, "--format", "json"))
            self.assertEqual([f["message"] for f in again["findings"]], [f["message"] for f in result["findings"]])

    def test_a_published_config_as_a_model_is_written_out_in_our_keys(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "config.json").write_text(json.dumps(
                {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32,
                 "num_attention_heads": 32, "vocab_size": 128256}))
            scenario = json.loads((program.ROOT / IB).read_text())
            scenario["workload"]["model"] = "config.json"
            (pathlib.Path(folder) / "s.json").write_text(json.dumps(scenario))
            done = self.shell("topsim run s.json", folder)
            self.assertIn('"config.json" is a file, and a model is a name or its figures', done.stderr)
            self.assertIn('{"layers": 32, "hidden": 4096, "heads": 32, "vocab": 128256, "gated_ffn": true}', done.stderr)

    def test_shipped_traces_are_found_from_any_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            done = self.shell("topsim trace info configs/traces/ring8.goal", folder)
            self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_result_knows_the_files_of_its_scenario_in_every_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            below = pathlib.Path(folder) / "below"
            below.mkdir()
            program.output("topo", "export", "h100x1", "-o", below / "cluster.json")
            (below / "s.json").write_text(json.dumps({
                "topology": {"file": "cluster.json"},
                "workload": {"model": "megatron-1.7b", "plan": {"micro_batch": 1, "global_batch": 1}}}))
            done = self.shell("topsim run below/s.json --out r --quiet && topsim explain r --quiet", folder)
            self.assertEqual((done.returncode, done.stderr), (0, ""))


    def test_paths_of_set_are_looked_up_where_the_command_runs_then_beside_the_scenario(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "below").mkdir()
            scenario = pathlib.Path(folder) / "below" / "s.json"
            scenario.write_text(json.dumps({
                "topology": {"node": "h100x1", "nodes": 1},
                "workload": {"model": "megatron-1.7b", "plan": {"micro_batch": 1, "global_batch": 1}}}))
            set_file = "--set topology.node=null --set topology.nodes=null --set topology.file="
            program.output("topo", "export", "h100x1", "-o", pathlib.Path(folder) / "here.json")
            program.output("topo", "export", "h100x1", "-o", scenario.parent / "beside.json")
            for name in ("here.json", "beside.json"):
                done = self.shell(f"topsim run below/s.json --quiet {set_file}{name}", folder)
                self.assertEqual((done.returncode, done.stderr), (0, ""), name)
            done = self.shell(f"topsim run below/s.json --quiet {set_file}nowhere.json", folder)
            self.assertEqual(done.returncode, 2)
            self.assertIn(f"looked for {folder}/nowhere.json and {folder}/below/nowhere.json", done.stderr)
            done = self.shell("topsim run below/s.json --quiet --set 'workload={\"trace\": {\"format\": \"goal\", \"path\": \"no.goal\"}}'", folder)
            self.assertIn(f"looked for {folder}/no.goal and {folder}/below/no.goal", done.stderr)

    def test_a_trace_that_waits_for_itself_is_told_when_it_is_looked_at(self):
        with tempfile.TemporaryDirectory() as folder:
            goal = pathlib.Path(folder) / "circle.goal"
            goal.write_text("num_ranks 1\nrank 0 {\na: calc 5\nb: calc 5\na requires b\nb requires a\n}\n")
            done = program.topsim("trace", "info", goal)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn("2 nodes wait for each other", done.stderr)


class TopologyFiles(unittest.TestCase):
    def test_a_name_that_says_another_format_than_asked_for_is_remarked(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "box.json"
            done = program.topsim("topo", "export", "hgx-h100", "--as", "nccl", "-o", path)
            self.assertEqual(done.returncode, 0)
            self.assertIn("is written as nccl, and its name says json", done.stderr)
            done = program.topsim("topo", "export", "hgx-h100", "--as", "json", "-o", path)
            self.assertNotIn("warning", done.stderr)

    def test_the_format_follows_the_name(self):
        with tempfile.TemporaryDirectory() as folder:
            for verb, name, start in [("export", "t.json", "{"), ("export", "t.xml", "<system"), ("draw", "t.svg", "<svg"),
                                      ("draw", "t.dot", "graph"), ("export", "t.txt", "node0"), ("bom", "b.txt", "count"),
                                      ("bom", "b.json", "{"), ("bom", "b.csv", "category,")]:
                with self.subTest(name):
                    path = pathlib.Path(folder) / name
                    program.output("topo", verb, IB, "-o", path)
                    self.assertTrue(path.read_text().lstrip().startswith(start), path.read_text()[:80])

    def test_other_names_are_refused_with_those_that_are_known(self):
        for verb, name, known in [("draw", "t.png", ".svg"), ("bom", "b.md", ".csv")]:
            done = program.topsim("topo", verb, IB, "-o", name)
            self.assertEqual(done.returncode, 2)
            self.assertIn(known, done.stderr)


if __name__ == "__main__":
    unittest.main()
