"""The program as a shell sees it: exit codes, streams, width."""

import json
import pathlib
import re
import signal
import subprocess
import unittest

import picture
import program

IB = "configs/8xH100-ib.json"
ESCAPE = "\x1b"
LINES, COLUMNS = 24, 80


class ExitCodes(unittest.TestCase):
    def code(self, *words):
        return program.topsim(*words).returncode

    def test_zero_when_all_is_well(self):
        self.assertEqual(self.code("run", IB), 0)
        self.assertEqual(self.code("doctor"), 0)

    def test_two_for_mistakes_of_the_user_and_nothing_on_standard_output(self):
        for words in (["rum"], ["run"], ["run", "missing.json"], ["run", IB, "--frmat", "json"],
                      ["run", IB, "--format", "xml"], ["run", IB, "--set", "topology.nods=2"],
                      ["run", IB, "--fail-if", "step_time > fast"], ["run", IB, "--network", "wire"],
                      ["list", "cars"], ["schema", "nothing"], ["completion", "dos"]):
            with self.subTest(words):
                done = program.topsim(*words)
                self.assertEqual(done.returncode, 2)
                self.assertEqual(done.stdout, "")
                self.assertTrue(done.stderr.startswith("error: "), done.stderr)

    def test_standard_output_that_cannot_be_written_is_the_users(self):
        for words in (["run", IB], ["run", IB, "--format", "json"], ["list", "hardware"], ["bench", "all_reduce", IB],
                      ["topo", "export", IB], ["--help"]):
            with self.subTest(words), open("/dev/full", "w", encoding="utf-8") as full:
                done = subprocess.run([program.TOPSIM, *words], cwd=program.ROOT, env=program.environment(), stdout=full,
                                      stderr=subprocess.PIPE, text=True, check=False)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn("cannot write to standard output", done.stderr)

    def test_a_check_of_a_topology_knows_whether_its_parts_go_together(self):
        words = ["topo", "check", IB, "--set", "topology.fabric.link=ib-xdr"]
        done = program.topsim(*words)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("warning: a port of ConnectX-7", done.stdout.replace("NVIDIA ", ""))
        self.assertEqual(self.code(*words, "--strict"), 1)
        self.assertEqual(self.code("topo", "check", IB, "--strict"), 0)

    def test_a_check_of_a_topology_says_of_it_what_a_run_would_refuse(self):
        for path in sorted((program.ROOT / "tests" / "errors" / "cases").glob("*.txt")):
            scenario, refused = path.with_suffix(".json"), path.read_text()
            if "   at topology" not in refused or path.with_suffix(".set").exists():
                continue
            with self.subTest(path.name):
                done = program.topsim("topo", "check", str(scenario))
                self.assertIn(done.returncode, (1, 2))
                self.assertIn(refused.splitlines()[0], done.stdout + done.stderr)

    def test_help_names_the_default_of_every_format(self):
        for command in ("run", "compare", "bench", "sweep", "plan", "explain", "calibrate", "validate"):
            with self.subTest(command):
                text = " ".join(program.topsim(command, "--help").stdout.split())
                self.assertRegex(text, r"--format \S+ What is printed \(default table\)")

    def test_topologies_that_are_only_shown_have_no_options_of_simulations(self):
        for what in ("show", "draw", "export", "bom"):
            with self.subTest(what):
                self.assertNotRegex(program.output("topo", what, "--help"), "--network|--seed")

    def test_names_given_to_an_import_are_the_catalogues(self):
        with program.temporary_folder() as folder:
            matrix = pathlib.Path(folder) / "topo.txt"
            matrix.write_text("        GPU0    GPU1\nGPU0     X      NV18\nGPU1    NV18     X\n")
            done = program.topsim("topo", "import", matrix, "--gpu", "h100-smx5", "--nic-link", "ib-nrd")
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn('--gpu: unknown accelerator "h100-smx5"', done.stderr)
            self.assertIn("h100-sxm5", done.stderr)
            self.assertIn('--nic-link: unknown link "ib-nrd"', done.stderr)
            self.assertEqual(self.code("topo", "import", matrix, "--gpu", "h100-sxm5"), 0)

    def test_what_is_like_a_topology_and_is_none_is_named(self):
        with program.temporary_folder() as folder:
            file = pathlib.Path(folder) / "file"
            for text, what in (('<graphs version="1"><graph id="0"/></graphs>', "is NCCL's graph"),
                               ('Switch 8 "leaf0"\n[1] "host0"[1]\n\nHca 1 "host0"\n[1] "leaf0"[1]\n',
                                "is a network for ibsim")):
                file.write_text(text)
                done = program.topsim("topo", "import", file)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertIn(what, " ".join(done.stderr.split()))

    def test_an_import_reads_a_stream_and_what_it_writes_is_accepted(self):
        # As clouds ship them: no NVLink, no network. With both named the file runs on two boxes.
        gpus = "".join(f'<pci busid="0000:1{i}:00.0" class="0x030200" link_speed="16 GT/s" link_width="16"/>'
                       for i in range(8))
        xml = ('<system version="1"><cpu numaid="0" arch="x86_64" vendor="AuthenticAMD" familyid="23" modelid="49">'
               f'{gpus}<pci busid="0000:20:00.0" class="0x020700" link_speed="16 GT/s" link_width="16"/></cpu></system>')
        words = ["topo", "import", "-", "--gpu", "a100-sxm4-40gb", "--nodes", "2", "-o", "-"]
        with program.temporary_folder() as folder:
            for extra, code in ((["--nic-link", "ib-hdr"], 0), ([], 2)):
                done = subprocess.run([program.TOPSIM, *words, *extra], input=xml, capture_output=True, text=True,
                                      cwd=program.ROOT, env=program.environment(), check=True)
                self.assertIn("12 to NVSwitches are assumed", done.stderr)
                (pathlib.Path(folder) / "box.json").write_text(done.stdout)
                scenario = pathlib.Path(folder) / "scenario.json"
                scenario.write_text(json.dumps({"topology": {"file": "box.json"}, "workload": {"model": "llama2-7b",
                                                "plan": {"tp": 8, "recompute": "full"}, "sequence": 2048}}))
                run = program.topsim("run", scenario, "--allow-oom")
                self.assertEqual(run.returncode, code, run.stderr)
                if code == 2:
                    self.assertIn("no cable leaves node0's NICs", run.stderr)
                    self.assertIn("--nic-link", run.stderr)

    def test_a_name_that_is_neither_a_scenario_nor_a_node_gets_the_closest(self):
        self.assertIn("did you mean the node dgx-h100?", program.topsim("topo", "show", "dgx_h100").stderr)

    def test_what_has_no_effect_on_a_pattern_is_refused(self):
        for words in (["alltoall", "--algorithm", "ring"], ["incast", "-e", "8M"], ["incast", "-f", "4"],
                      ["incast", "--protocol", "ll"], ["all_reduce", "--senders", "3"], ["all_reduce", "--window", "1 ms"],
                      ["all_reduce", "--lane", "0"], ["all_reduce", "--verb", "send"], ["all_reduce", "--textbook"],
                      ["all_gather", "--from", "node0/gpu0"], ["sendrecv", "--to", "node1/gpu0"],
                      ["permutation", "--senders", "3"], ["p2p", "--window", "1 ms"], ["victim", "--from", "node0/nic0"]):
            with self.subTest(words):
                done = program.topsim("bench", words[0], IB, *words[1:])
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertIn("leave ", done.stderr)

    def test_the_pattern_all_to_all_names_nccls_collective(self):
        for words in ([], ["-b", "64K"], ["-b", "8", "-e", "1M", "-f", "2"]):
            with self.subTest(words):
                done = program.topsim("bench", "all_to_all", IB, *words)
                self.assertIn("alltoall", done.stdout + done.stderr)
                self.assertEqual(done.returncode, 2 if "-e" in words else 0)

    def test_a_cluster_alone_has_no_mistakes_of_a_workload(self):
        with program.temporary_folder() as folder:
            cluster = pathlib.Path(folder) / "cluster.json"
            cluster.write_text('{"topology": {"node": "hgx-h100"}, "network": {"ncl": {"nvls": false}}}')
            done = program.topsim("bench", "all_reduce", cluster)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("error: ")), (2, "", 1))
            self.assertIn('did you mean "nccl"?', done.stderr)

    def test_what_would_be_overridden_without_a_word_is_refused(self):
        with program.temporary_folder() as folder:
            same = str(pathlib.Path(folder) / "same.json")
            for words, said in ((["sweep", IB, "--vary", "topology.nodes=2,4", "--set", "topology.nodes=8"], "topology.nodes is varied"),
                                (["sweep", IB, "--vary", "run.seed=2,4", "--seed", "8"], "run.seed is varied"),
                                (["run", IB, "--html", same, "--trace", folder + "/./same.json"], "name the same file"),
                                (["run", IB, "--html", "-"], '"-" is no name of a file')):
                with self.subTest(words):
                    done = program.topsim(*words)
                    self.assertEqual((done.returncode, done.stdout), (2, ""))
                    self.assertIn(said, done.stderr)
            self.assertEqual(list(pathlib.Path(folder).iterdir()), [])

    def test_no_output_overwrites_what_is_read(self):
        with program.temporary_folder() as folder:
            mine, result = pathlib.Path(folder) / "mine.json", pathlib.Path(folder) / "out" / "result.json"
            mine.write_text((program.ROOT / IB).read_text())
            page = pathlib.Path(folder) / "page.html"  # a scenario by another name
            page.symlink_to(mine)
            program.output("run", IB, "--out", result.parent, "--quiet")
            before = {file: file.read_bytes() for file in (mine, result)}
            for words in (["run", mine, "--html", mine], ["run", mine, "--html", page], ["run", mine, "--trace", mine],
                          ["compare", IB, mine, "--html", page], ["compare", IB, "--html", page, mine],
                          ["plan", mine, "--out", mine], ["topo", "export", mine, "-o", mine],
                          ["topo", "draw", mine, "-o", page, "--as", "svg"], ["topo", "bom", mine, "-o", mine],
                          ["sweep", mine, "--vary", "run.seed=1,2", "--html", page],
                          ["explain", result.parent, "--html", result], ["explain", mine, "--html", page]):
                with self.subTest(words):
                    done = program.topsim(*words)
                    self.assertEqual((done.returncode, done.stdout), (2, ""))
                    self.assertRegex(done.stderr, "that is read\n|is read|would be a page")
                    self.assertEqual({file: file.read_bytes() for file in before}, before)
            done = program.topsim("run", mine, "--html", mine)
            self.assertIn(f"--html {mine} is the scenario that is read\n   = name another file", done.stderr)
            done = program.topsim("run", IB, "--html", folder + "/x.json")
            self.assertIn("x.json would be a page of HTML\n   = name it", done.stderr)
            inside = result.parent / "run.json"
            inside.write_text(mine.read_text())
            self.assertIn("which is read", program.topsim("run", inside, "--out", result.parent).stderr)
            self.assertEqual(inside.read_text(), mine.read_text())

    def test_what_is_included_is_not_overwritten_either(self):
        with program.temporary_folder() as folder:
            base, own = pathlib.Path(folder) / "base.json", pathlib.Path(folder) / "own.json"
            base.write_text((program.ROOT / IB).read_text())
            own.write_text('{"file": "base.json", "run": {"seed": 2}}')
            done = program.topsim("plan", own, "--out", base)
            self.assertEqual(done.returncode, 2)
            self.assertIn("is a file that is read", done.stderr)

    def test_points_of_a_sweep_that_repeat_one_another_are_not_called_stored(self):
        done = program.topsim("sweep", IB, "--vary", "run.seed=8,8")
        self.assertIn("1 of 2 points repeat another", done.stderr)
        self.assertNotIn("were there", done.stderr)

    def test_mistakes_of_a_change_name_the_option_that_made_it(self):
        done = program.topsim("compare", IB, "--with", "topology.nods=2")
        self.assertIn("--> --with:1:", done.stderr)
        done = program.topsim("compare", IB, "--with", "topology.fabric.sharp")
        self.assertIn("error: --with needs PATH=VALUE", done.stderr)
        self.assertNotIn("--set", done.stderr)
        done = program.topsim("sweep", IB, "--vary", "topology.nods=2,4,8")
        self.assertIn("point of the sweep:1:", done.stderr)
        self.assertEqual(done.stderr.count("unknown key"), 1, done.stderr)

    def test_a_database_is_not_called_text(self):
        self.assertEqual(self.code("sweep", IB, "--vary", "topology.nodes=8", "--out", "rows.csv"), 2)

    def test_a_damaged_result_is_told_by_what_is_missing(self):
        with program.temporary_folder() as folder:
            file = pathlib.Path(folder) / "result.json"
            result = json.loads(program.output("run", IB, "--format", "json"))
            del result["name"]
            file.write_text(json.dumps(result))
            done = program.topsim("explain", file)
            self.assertEqual(done.returncode, 2)
            self.assertIn("damaged result: key 'name' not found", done.stderr)

    def test_a_result_without_a_step_is_neither_compared_nor_explained(self):
        with program.temporary_folder() as folder:
            file = pathlib.Path(folder) / "stopped.json"
            result = json.loads(program.output("run", IB, "--format", "json"))
            result["step"] = {"seconds": 0, "per_step": []}
            result["complete"] = False
            file.write_text(json.dumps(result))
            for words in (["compare", IB, file], ["compare", file, file, "--fail-if", "step_time > 1 %"], ["explain", file]):
                with self.subTest(words[0]):
                    done = program.topsim(*words)
                    self.assertEqual((done.returncode, done.stdout), (2, ""))
                    self.assertIn("stopped.json has no step", done.stderr)
                    self.assertIn("run it again", done.stderr)
            done = program.topsim("run", file)
            self.assertEqual(done.stderr.count("error:"), 1)
            self.assertIn("this is the result of a run, not a scenario", done.stderr)

    def test_a_cluster_needs_no_workload_to_be_looked_at_or_measured(self):
        with program.temporary_folder() as folder:
            file = pathlib.Path(folder) / "cluster.json"
            file.write_text(json.dumps({"topology": json.loads((program.ROOT / IB).read_text())["topology"]}))
            for words in (["bench", "all_reduce"], ["topo", "show"], ["topo", "check"], ["topo", "bom"]):
                with self.subTest(words):
                    self.assertEqual(program.output(*words, file), program.output(*words, IB))
            for words in (["run"], ["plan"], ["sweep", "--vary", "topology.nodes=2,4"], ["explain"]):
                with self.subTest(words):
                    done = program.topsim(words[0], file, *words[1:])
                    self.assertEqual(done.returncode, 2)
                    self.assertIn('missing key "workload"', done.stderr)

    def test_an_output_folder_that_cannot_be_written_is_the_users(self):
        done = program.topsim("run", IB, "--out", "/proc/nowhere")
        self.assertEqual(done.returncode, 2, done.stderr)


class Streams(unittest.TestCase):
    def test_json_stands_alone_on_standard_output(self):
        done = program.topsim("run", IB, "--format", "json")
        self.assertEqual(json.loads(done.stdout)["format"], "topsim.result/1")

    def test_pipes_get_no_colours_and_no_progress(self):
        done = program.topsim("run", IB)
        self.assertNotIn(ESCAPE, done.stdout + done.stderr)
        self.assertEqual(done.stderr, "")

    def test_a_closed_pipe_is_no_mistake_of_the_program(self):
        command = f"'{program.TOPSIM}' list hardware | head -n 1; exit ${{PIPESTATUS[0]}}"
        done = subprocess.run(["bash", "-c", command], cwd=program.ROOT, capture_output=True, text=True, check=False)
        self.assertIn(done.returncode, (0, 128 + signal.SIGPIPE))
        self.assertEqual(done.stderr, "")

    def test_no_color_is_respected_on_a_terminal(self):
        self.assertNotIn(ESCAPE + "[3", picture.on_terminal("run", IB, NO_COLOR="1"))
        self.assertNotIn(ESCAPE + "[3", picture.on_terminal("rum", NO_COLOR="1"))
        self.assertIn(ESCAPE, picture.on_terminal("rum"))

    def test_a_dumb_terminal_gets_neither_colours_nor_progress(self):
        words = ["run", IB, "--no-fold", "--set", "run.steps=300"]
        self.assertNotIn(ESCAPE, picture.on_terminal("rum", TERM="dumb"))
        self.assertNotIn("simulating", picture.on_terminal(*words, TERM="dumb"))

    def test_a_terminal_sees_progress_after_half_a_second(self):
        text = picture.on_terminal("run", IB, "--no-fold", "--set", "run.steps=300")
        self.assertRegex(text, r"simulating step \d+/301")  # a step of warm-up and three hundred
        quiet = picture.on_terminal("run", IB, "--no-fold", "--set", "run.steps=300", "--quiet")
        self.assertNotIn("simulating", quiet)

    def test_programs_get_progress_as_lines_of_json(self):
        done = program.topsim("run", IB, "--format", "json", "--progress", "json")
        lines = [json.loads(line)["progress"] for line in done.stderr.splitlines() if line.startswith("{")]
        self.assertEqual((lines[-1]["steps_done"], lines[-1]["steps"], lines[-1]["share"]), (3, 3, 1))
        self.assertEqual([line["events"] for line in lines], sorted(line["events"] for line in lines))
        json.loads(done.stdout)  # stays the result alone
        quiet = program.topsim("run", IB, "--format", "json", "--progress", "json", "--quiet")
        self.assertEqual(quiet.stderr, "")


class Screens(unittest.TestCase):
    def test_a_run_fits_a_screen_of_24_lines_of_80_columns(self):
        for path in program.SCENARIOS:
            with self.subTest(path.name):
                lines = program.output("run", path, env=program.environment(COLUMNS=str(COLUMNS))).splitlines()
                self.assertLessEqual(len(lines), LINES)
                self.assertEqual([line for line in lines if len(line) > COLUMNS], [])

    def test_narrow_terminals_are_not_overrun(self):
        for columns in (40, 60, 100, 200):
            with self.subTest(columns):
                text = program.output("run", IB, env=program.environment(COLUMNS=str(columns)))
                self.assertLessEqual(max(map(len, text.splitlines())), max(columns, 60))

    def test_a_screen_and_its_json_tell_the_same(self):
        text, result = program.output("run", IB), program.result(program.ROOT / IB)
        value, unit = re.search(r"step time +([\d.]+) (\w+)", text).groups()
        self.assertAlmostEqual(float(value) * {"s": 1, "ms": 1e-3, "us": 1e-6}[unit], result["step"]["seconds"],
                               delta=0.005 * result["step"]["seconds"])
        busy = float(re.search(r"accelerator busy +([\d.]+) %", text).group(1))
        self.assertAlmostEqual(busy, 100 * (1 - result["accelerators"]["idle_fraction"]), delta=0.051)


class Bench(unittest.TestCase):
    """The table as those read it who read nccl-tests' own: by columns from the left, or by the names above them."""

    def test_bench_says_where_nics_and_switches_do_not_fit_the_cables(self):
        faster = '{"use": "ib-ndr", "bandwidth": "800 Gbit/s"}'
        for link, words, said in ((faster, ["p2p", "-b", "8M", "-e", "8M"], ["a port of ConnectX-7", "QM9700 (managed) NDR has no ports for"]),
                                  ("roce-400g", ["all_reduce", "-b", "8M", "-e", "8M"], ["has no ports for RoCEv2"]),
                                  ("roce-400g", ["incast", "--senders", "3"], ["has no ports for RoCEv2"]),
                                  ("ib-ndr", ["p2p", "-b", "8M", "-e", "8M"], [])):
            with self.subTest(words=words, link=link):
                done = program.topsim("bench", words[0], IB, *words[1:], "--set", f"topology.fabric.link={link}")
                self.assertEqual(done.returncode, 0, done.stderr)
                for sentence in said:
                    self.assertIn(sentence, done.stdout + done.stderr)
                if not said:
                    self.assertEqual(done.stderr, "")

    def test_columns_are_those_of_nccl_tests(self):
        for collective in ("all_reduce", "alltoall", "sendrecv"):
            words = ["bench", collective, IB, "-b", "1M", "-e", "1G", "-f", "32"]
            text = program.output(*words)
            rows = json.loads(program.output(*words, "--format", "json"))["rows"]
            lines = [line.split() for line in text.splitlines() if line and not line.startswith("#")]
            self.assertEqual(len(lines), len(rows))
            for line, row in zip(lines, rows):
                size, _, kind = line[:3]
                out_of_place, in_place = line[5:9], line[9:13]
                self.assertEqual((int(size), kind), (row["size"], "float"))
                self.assertEqual(out_of_place, in_place)
                self.assertAlmostEqual(float(in_place[2]), row["busbw"], delta=0.0051)
                self.assertEqual(in_place[3], "N/A")  # nothing is checked, as with -c 0
            names = next(line for line in text.splitlines() if "busbw" in line).split()[1:]
            self.assertEqual(names[5:13], 2 * ["time", "algbw", "busbw", "#wrong"])
            self.assertEqual(len(names), len(lines[0]))
            mean = float(re.search(r"^# Avg bus bandwidth    : ([\d.]+)", text, re.MULTILINE).group(1))
            self.assertAlmostEqual(mean, sum(row["busbw"] for row in rows) / len(rows), delta=1e-3)
            self.assertIn("\n# Out of bounds values : 0 OK\n", text)


if __name__ == "__main__":
    unittest.main()
