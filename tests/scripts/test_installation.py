"""What is installed beside the program: man page, configurations that a folder adds, what the shell completes."""

import json
import pathlib
import shutil
import subprocess
import unittest

import program

IB = "configs/8xH100-ib.json"


class Installation(unittest.TestCase):
    def setUp(self):
        if not (program.BUILD / "topsim.1").exists():
            self.skipTest("build the target `program` first")

    def test_an_installed_program_works_from_any_folder(self):
        with program.temporary_folder() as prefix:
            subprocess.run(["cmake", "--install", program.BUILD, "--prefix", prefix], check=True, capture_output=True)
            installed = pathlib.Path(prefix) / "bin" / "topsim"
            there = program.output("run", "8xH100-ib", "--format", "json", cwd="/", program=installed)
            self.assertEqual(json.loads(there)["step"], program.result(program.ROOT / IB)["step"])
            self.assertIn(prefix, program.output("doctor", cwd="/", program=installed))
            share = pathlib.Path(prefix) / "share"
            for name in ("bash-completion/completions/topsim", "zsh/site-functions/_topsim",
                         "fish/vendor_completions.d/topsim.fish", "man/man1/topsim.1",
                         "topsim/configs/schema/scenario.schema.json"):
                self.assertGreater((share / name).stat().st_size, 0, name)

    def test_the_doctor_says_which_python_and_what_is_built_in(self):
        text = program.output("doctor")
        self.assertRegex(text, r"\n      python +(module for Python 3\.\d+\.\d+ \(.*python.*\), |no module)")
        self.assertRegex(text, r"\n      pages +")

    def test_the_manual_page_is_set_without_a_warning(self):
        # test.sh installs groff; a plain build need not have it.
        if shutil.which("groff") is None:
            self.skipTest("groff is not installed")
        done = subprocess.run(["groff", "-man", "-Tutf8", "-ww"], input=program.output("man"), capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.stderr, "")

    def test_the_manual_page_knows_every_command(self):
        page = program.output("man").replace("\\-", "-")
        for name in command_names():
            self.assertIn(f'.SS "topsim {name}"', page)


class ConfigPath(unittest.TestCase):
    def with_path(self, folder, *words):
        return subprocess.run([program.TOPSIM, *words], capture_output=True, text=True, cwd=program.ROOT, check=False,
                              env={**program.environment(), "TOPSIM_CONFIG_PATH": str(folder)})

    def test_a_folder_adds_to_the_installed_entries(self):
        with program.temporary_folder() as folder:
            hardware = pathlib.Path(folder) / "hardware"
            hardware.mkdir()
            links = json.loads((program.ROOT / "configs/hardware/links.json").read_text())
            mine = {"description": "ours", "sources": links["sources"], "links": {"my-ndr": links["links"]["ib-ndr"]}}
            (hardware / "links.json").write_text(json.dumps(mine))
            done = self.with_path(folder, "run", IB, "--set", "topology.fabric.link=my-ndr", "--format", "json")
            self.assertEqual(done.returncode, 0, done.stderr)
            usual = program.output("run", IB, "--format", "json")
            self.assertEqual(json.loads(done.stdout)["step"], json.loads(usual)["step"])
            done = self.with_path(folder, "doctor")
            self.assertEqual(done.returncode, 0, done.stdout)

    def test_a_folder_of_models_alone_is_no_fault_and_one_that_is_not_there_is(self):
        with program.temporary_folder() as folder:
            (pathlib.Path(folder) / "models").mkdir()
            self.assertEqual(self.with_path(folder, "doctor").returncode, 0)
            self.assertEqual(self.with_path(program.ROOT / "configs", "doctor").stdout.count("  configs "), 1)
            done = self.with_path(pathlib.Path(folder) / "nowhere", "run", IB)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn("TOPSIM_CONFIG_PATH: there is no folder", done.stderr)
            done = self.with_path(pathlib.Path(folder) / "nowhere", "doctor")
            self.assertEqual(done.returncode, 1)
            self.assertIn("there is no folder", done.stdout)


class Completion(unittest.TestCase):
    def complete(self, *words):
        """What bash offers after the given words."""
        script = 'eval "$(cat)"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _topsim; printf "%s\\n" "${COMPREPLY[@]}"'
        done = subprocess.run(["bash", "-c", script, "bash", *words], input=program.output("completion", "bash"),
                              cwd=program.ROOT, capture_output=True, text=True, check=True)
        return done.stdout.split()

    def test_bash_completes_commands_options_and_values(self):
        self.assertEqual(self.complete("topsim", "comp"), ["compare", "completion"])
        self.assertIn("--fail-if", self.complete("topsim", "run", "--"))
        self.assertEqual(self.complete("topsim", "run", "--network", "f"), ["flow"])
        self.assertIn(IB, self.complete("topsim", "run", "configs/8xH100"))
        self.assertIn("check", self.complete("topsim", "topo", ""))
        self.assertEqual(self.complete("topsim", "bench", "all_r"), ["all_reduce"])
        self.assertIn(IB, self.complete("topsim", "bench", "all_reduce", "configs/8xH100"))
        self.assertEqual(self.complete("topsim", "list", "hardw"), ["hardware"])
        self.assertIn("h100-sxm5", self.complete("topsim", "list", "hardware", "h100"))

    def test_bash_offers_what_an_option_takes(self):
        self.assertIn("8xH100-ib", self.complete("topsim", "run", "8xH100-i"))
        self.assertEqual(self.complete("topsim", "topo", "import", "x.xml", "--nic-link", "ib-hd"), ["ib-hdr", "ib-hdr100"])
        for option in ("--link", "--rank", "--seed"):
            self.assertEqual(self.complete("topsim", "run", IB, option, ""), [])

    def test_bash_completes_the_paths_of_a_scenario(self):
        for option in (("run", IB, "--set"), ("sweep", IB, "--vary")):
            self.assertEqual(self.complete("topsim", *option, "workload.plan.tp"), ["workload.plan.tp=", "workload.plan.tp_overlap="])
            self.assertIn("topology.fabric.link.latency=", self.complete("topsim", *option, "topology.fabric.link."))


def command_names():
    listed = program.output("--help").split("commands:\n")[1].split("\n\n")[0]
    return [line.split()[0] for line in listed.splitlines()]



if __name__ == "__main__":
    unittest.main()
