"""Mistakes arrive as ConfigError with the place and the remedy."""

import pickle
import tempfile
import unittest

import topsim
from small import two_boxes


class ConfigError(unittest.TestCase):
    def catch(self, *arguments, **keywords):
        with self.assertRaises(topsim.ConfigError) as caught:
            topsim.run(*arguments, **keywords)
        return caught.exception

    def test_is_a_value_error_with_the_place_in_the_file(self):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write('{\n  "topology": {"node": "hgx-h100", "nodes": 2,\n'
                       '    "fabric": {"kind": "rail", "lnk": "ib-ndr"}},\n'
                       '  "workload": {"model": "llama3-8b"}\n}\n')
            file.flush()
            error = self.catch(file.name)
            self.assertEqual(error.file, file.name)
        self.assertIsInstance(error, ValueError)
        # Line 3 is `    "fabric": {"kind": "rail", "lnk"...`: 4 spaces, 10 of "fabric":, a space, {, 15 of
        # "kind": "rail", and a space stand before the key, so it begins in column 32.
        self.assertEqual((error.path, error.line, error.column), ("topology.fabric.lnk", 3, 32))
        self.assertIn('did you mean "link"?', error.help)
        self.assertIn("-->", str(error))

    def test_names_all_mistakes(self):
        wrong = two_boxes()
        wrong["topology"]["bandwith"] = 1
        wrong["workload"]["sequence"] = "long"
        error = self.catch(wrong)
        self.assertEqual([problem.path for problem in error.problems], ["topology.bandwith", "workload.sequence"])
        self.assertEqual(error.path, "topology.bandwith")

    def test_mistakes_found_later_have_places_too(self):
        wrong = two_boxes()
        wrong["topology"]["fabric"]["link"] = "ib-ndrr"
        error = self.catch(wrong)
        self.assertEqual(error.path, "topology.fabric.link")
        self.assertGreater(error.line, 1)
        self.assertIn("ib-ndr", error.help)

    def test_a_change_is_at_fault_when_it_is(self):
        error = self.catch(two_boxes(), **{"workload.plan.tpp": 4})
        self.assertEqual(error.path, "workload.plan.tpp")
        self.assertEqual(error.file, "changes")
        self.assertNotIn("--set", str(error))
        self.assertTrue(self.catch(two_boxes(), set=["nodes"]).message.startswith("a change needs PATH=VALUE"))

    def test_arguments_that_would_be_misread_are_refused(self):
        two = two_boxes()
        self.assertRaises(ValueError, topsim.compare, two, two, seeds=0)
        self.assertRaises(ValueError, topsim.sweep, two, {"workload.plan.tp": [8]}, jobs=-1)
        self.assertRaises(TypeError, topsim.plan, two, schedules="1f1b")  # not the schedules "1", "f", "1" and "b"
        self.assertRaises(TypeError, topsim.plan, two, keep="tp")

    def test_wrong_types_are_told_in_one_line_before_anything_runs(self):
        two, result, topology = two_boxes(), topsim.run(two_boxes()), topsim.Topology("dgx-h100")
        grid = {"workload.plan.tp": [8]}
        for call in (lambda: topsim.run(two, set=[1]), lambda: topsim.run(two, fold="no"),
                     lambda: topsim.run(two, progress="x"), lambda: topsim.sweep(two, grid, jobs=1.5),
                     lambda: topsim.sweep(two, grid, jobs=None), lambda: topsim.sweep(two, grid, best=None),
                     lambda: topsim.sweep(two, grid, pareto="mfu"), lambda: topsim.plan(two, gpus=1.5),
                     lambda: topsim.bench("all_reduce", two, algorithm=None), lambda: result.link(None),
                     lambda: result.rank("3"), lambda: topsim.explain(result, faster="10"), lambda: topsim.names(3),
                     lambda: topsim.Topology(4)):
            with self.assertRaises(TypeError) as caught:
                call()
            self.assertRegex(str(caught.exception), "^.{1,120}$")
        for call in (lambda: topology.draw(most_nodes=-1), lambda: topology.to_nccl_xml(-1),
                     lambda: topsim.plan(two, top=10**9), lambda: topsim.plan(two, top=0),
                     lambda: topsim.bench("all_reduce", two, factor=float("inf")),
                     lambda: topsim.compare(two, two, jobs=2**40), lambda: result.rank(2**70)):
            with self.assertRaisesRegex(ValueError, "^.{1,120}$"):
                call()

    def test_a_nul_in_a_path_is_no_shorter_path(self):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            for call in (topsim.run, topsim.load, topsim.Topology, lambda path: topsim.compare(path, path),
                         lambda path: topsim.sweep(two_boxes(), {"run.seed": [1]}, out=path)):
                with self.assertRaisesRegex(ValueError, "NUL"):
                    call(file.name + "\0x")

    def test_remedies_name_arguments_and_no_options_of_the_command(self):
        error = self.catch("8xH100-ib", **{"workload.plan.tp": 4, "workload.plan.dp": 8})
        self.assertIn("allow_oom=True", error.help)
        self.assertNotIn("--", error.help)
        self.assertIn("allow_oom=True", str(error))

    def test_a_file_that_is_missing(self):
        error = self.catch("configs/8xH100-iib.json")
        self.assertIn("8xH100-ib", error.help)
        self.assertEqual(error.line, 0)

    def test_a_file_that_is_no_result(self):
        with self.assertRaises(topsim.ConfigError):
            topsim.load("configs/8xH100-ib.json")

    def test_pickles(self):
        error = self.catch(two_boxes(), **{"workload.plan.tpp": 4})
        copy = pickle.loads(pickle.dumps(error))
        self.assertEqual((str(copy), copy.problems), (str(error), error.problems))

    def test_wrong_types_are_type_errors(self):
        with self.assertRaises(TypeError):
            topsim.run(42)
        with self.assertRaises(TypeError):
            topsim.run(two_boxes(), set={"workload.plan.tp": object()})


if __name__ == "__main__":
    unittest.main()
