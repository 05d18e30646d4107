"""Whole steps of one accelerator as timed for topsim (tests/golden/accelerator). No constant comes from them."""

import json
import unittest

import program

GOLDEN = program.ROOT / "tests/golden/accelerator"
LLAMA = {"1b": {"layers": 16, "hidden": 2048, "heads": 32, "kv_heads": 8, "ffn": 8192},
         "8b": {"hidden": 4096, "heads": 32, "kv_heads": 8, "ffn": 14336}}


def measured(name, section):
    table = json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))[section]
    return [{"file": name, **dict(zip(table["columns"], row))} for row in table["rows"]]


class AcceleratorSteps(unittest.TestCase):
    def predicted(self, node, model, framework, sequence, micro_batch, recompute):
        scenario = {"topology": {"node": node, "nodes": 1},
                    "workload": {"model": model, "framework": framework, "sequence": sequence, "precision": "bf16",
                                 "plan": {"micro_batch": micro_batch, "global_batch": micro_batch,
                                          "recompute": recompute}},
                    "run": {"steps": 1, "warmup": 1}}
        with program.temporary_folder() as folder:
            path = f"{folder}/step.json"
            with open(path, "w", encoding="utf-8") as file:
                json.dump(scenario, file)
            words = ("--format", "json", "--quiet", "--allow-oom")
            return json.loads(program.output("run", path, *words))

    def check(self, step, predicted, published, least, most):
        with self.subTest(step=step):
            error = predicted / published - 1
            self.assertGreater(error, least)
            self.assertLess(error, most)

    # Attention written in XLA's operations is left out: they keep scores in 32 bits, which no set does.
    # A peak is known where it is above those of the steps before.
    def test_steps_under_jax_read_within_five_percent_and_their_peaks_within_fifteen(self):
        for name, node in (("h100-sxm5-more", "h100x1"), ("h200-sxm", "h200x1")):
            highest = 0
            for step in measured(name, "steps_jax"):
                if step["attention"] == "cudnn":
                    self.check_jax(step, node, highest)
                highest = max(highest, step["peak_bytes"])

    def check_jax(self, step, node, highest):
        llama = step["model"] == "llama"
        model = {"layers": step["layers"], "hidden": step["width"], "heads": step["heads"],
                 "kv_heads": step["kv_heads"], "ffn": step["feed_forward"], "vocab": step["vocabulary"],
                 "attention": {"kernel": "flash"}}
        model.update({"gated_ffn": True} if llama else {"positions": "learned"})
        recompute = {"dots": "selective", "weight dots": "selective"}.get(step["recompute"], step["recompute"])
        result = self.predicted(node, model, "maxtext@2024-gpu" if llama else "pax@2024", step["tokens"],
                                step["sequences"], recompute)
        self.check(step, result["step"]["seconds"], step["seconds"], -0.04, 0.05)
        if step["peak_bytes"] > highest:
            self.check(step, result["memory"]["per_accelerator_bytes"], step["peak_bytes"], -0.04, 0.15)

    def test_steps_of_gpt2_read_within_five_percent(self):
        for name, node in (("h100-sxm5", "h100x1"), ("h100-sxm5-again", "h100x1"), ("h200-sxm", "h200x1")):
            for step in measured(name, "steps_ddp"):
                model = {"layers": step["layers"], "hidden": step["hidden"], "heads": step["heads"],
                         "ffn": 4 * step["hidden"], "vocab": 50304, "tied_embeddings": True, "positions": "learned",
                         "attention": {"kernel": "flash"}}
                result = self.predicted(node, model, "ddp@2024-compile" if step["compiled"] else "ddp@2024", 1024,
                                        step["micro_batch"], "none")
                self.check(step, result["step"]["seconds"], step["step"], -0.05, 0.05)

    # A group of one rank casts whole shards and copies what others would reduce: 5 to 10 % of a step, not predicted.
    # At its power limit this H200 kept 663 TFLOP/s, an H100 702; the catalogue has 730 for both.
    def test_steps_of_llama_read_fast_by_what_a_group_of_one_copies(self):
        for name, node, least in (("h100-sxm5", "h100x1", -0.10), ("h200-sxm", "h200x1", -0.12)):
            for step in measured(name, "steps"):
                if step["model"] not in LLAMA or step["sequence"] < 4096:  # shorter ones wait for the host
                    continue
                model = {"vocab": 128256, "gated_ffn": True, **LLAMA[step["model"]], "layers": step["layers"]}
                result = self.predicted(node, model, "fsdp@2026-compile" if step["compiled"] else "fsdp@2026-eager",
                                        step["sequence"], step["micro_batch"], step["recompute"])
                self.check(step, result["step"]["seconds"], step["step"], least, 0)


if __name__ == "__main__":
    unittest.main()
