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
    def predicted(self, node, model, framework, sequence, micro_batch, recompute, **workload):
        plan = {"micro_batch": micro_batch, "global_batch": micro_batch, "recompute": recompute}
        return self.run_of(node, {"model": model, "framework": framework, "sequence": sequence, "plan": plan,
                                  **workload})

    def run_of(self, node, workload):
        scenario = {"topology": {"node": node, "nodes": 1}, "workload": {"precision": "bf16", **workload},
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

    # Engines add both residuals of a layer in the norms that follow. The compiler that was measured could join the
    # first only, as the second crosses two of its graphs: a kernel of 2 us more in each layer, and the gap before it.
    def test_tokens_one_by_one_read_within_five_percent(self):
        own_sum = 2e-6 + 0.5e-6
        for step in measured("h100-sxm5-steps", "steps_decode"):
            model = {"vocab": 128256, "gated_ffn": True, **LLAMA["8b"], "layers": step["layers"]}
            result = self.run_of("h100x1", {"model": model, "task": "decode", "sequence": step["cached"],
                                            "compute": {"cuda_graph": True},
                                            "plan": {"micro_batch": step["requests"]}})
            self.check(step, result["step"]["seconds"] + own_sum * step["layers"], step["time"] * 1e-6, -0.05, 0.05)

    # Kernels are compared, because the host of that machine, which `launched` waits for, is no DGX H100's.
    def test_kernels_of_adapters_read_up_to_an_eighth_slow_and_their_peaks_within_six_percent(self):
        for step in measured("h100-sxm5-steps", "steps_lora"):
            model = {"vocab": 128256, "gated_ffn": True, **LLAMA["8b"], "layers": step["layers"]}
            targets = ["qkv", "proj"] + (["fc1", "fc2"] if step["targets"] == "all" else [])
            result = self.predicted("h100x1", model, "ddp@2026", step["sequence"], step["micro_batch"],
                                    "full" if step["recomputed"] else "none", task="lora",
                                    lora={"rank": 16, "targets": targets})
            self.check(step, result["accelerators"]["busy_seconds"], step["kernels"], 0, 0.13)
            self.check(step, result["memory"]["per_accelerator_bytes"], step["peak"], -0.06, 0.06)

    # What a ring adds to a layer: the same tokens a rank with and without one, everything else alike. Rings of
    # 4,096 tokens a rank wait for their host; the measured ones copy the blocks that a network would bring.
    def test_pytorchs_ring_attention_takes_its_kernels_and_its_copies(self):
        whole = []
        for step in measured("h100-sxm5-steps", "context"):
            ring, alone = (self.busy_of_attention(step, cp) for cp in (step["ranks"], 1))
            others = step["alone"] + step["alone_backward"]
            published = step["forward"] + step["backward"]
            least = -0.05 if step["tokens"] > 4096 else -0.2
            whole.append(((ring - alone) * 1e6 + others) / published - 1)
            self.check(step, (ring - alone) * 1e6 + others, published, least, 0.05)
        self.assertLess(abs(sum(whole) / len(whole)), 0.05)

    def busy_of_attention(self, step, cp):
        layers = 4
        model = {"layers": layers, "hidden": 128 * step["heads"], "heads": step["heads"], "kv_heads": step["heads"],
                 "ffn": 4096, "vocab": 8192, "gated_ffn": True}
        plan = {"dp": 8 // cp, "cp": cp, "micro_batch": 1, "global_batch": 8 // cp, "recompute": "none"}
        result = self.run_of("hgx-h100", {"model": model, "framework": "fsdp@2025-eager", "plan": plan,
                                          "sequence": step["tokens"] * cp})["accelerators"]
        return (result["busy_seconds"] - result["slowed_seconds"]) / layers

    # One of the three, whose recomputation is whole, read 10 % slow, the others 5 and 9 % fast.
    def test_steps_in_8_bits_read_within_eleven_percent(self):
        for step in measured("h100-sxm5-steps", "steps_fp8"):
            model = {"vocab": 128256, "gated_ffn": True, **LLAMA[step["model"]], "layers": step["layers"]}
            result = self.predicted("h100x1", model, "fsdp@2026-compile", step["sequence"], step["micro_batch"],
                                    step["recompute"], precision="fp8")
            self.check(step, result["step"]["seconds"], step["step"], -0.11, 0.11)


if __name__ == "__main__":
    unittest.main()
