"""The pages of compare, sweep and validate: one shell with that of a run, figures as their JSON has them."""

import contextlib
import json
import os
import re
import sqlite3
import sys
import unittest

sys.path.insert(0, os.path.dirname(__file__))
from pages import ROOT, Pages, topsim

IB, ROCE = ROOT / "configs/8xH100-ib.json", ROOT / "configs/8xH100-roce.json"

# What a framework's release of 2023 has, of which most published results on A100 are.
OLD = (ROOT / "configs/16xA100-hdr.json", "--set", "workload.model=gpt3-2.7b", "--set", "workload.sequence=2048", "--set",
       "workload.plan.overlap_param_gather=false")


class Studies(Pages):
    def opened(self, page):
        self.assertLess(page.stat().st_size, 500_000)
        for width in (390, 1280):
            self.browser.open(page, width=width)
            self.assertEqual(self.browser.console, [])
            self.assertLessEqual(self.browser.value("document.documentElement.scrollWidth"), width)
        return self.browser.value("JSON.parse(document.getElementById('result').textContent)")

    def values(self, selector):
        return self.browser.value(f"[...document.querySelectorAll({json.dumps(selector)})].map((each) => +each.dataset.value)")

    def test_compare_shows_the_verdict_and_each_candidates_step(self):
        page, printed = self.page_of("compare", IB, ROCE, "--format", "json")
        told, shown = json.loads(printed), self.opened(page)
        self.assertEqual(shown, told)
        self.assertIn(told["verdict"].split("\n")[0], self.browser.value("document.getElementById('sentence').innerText"))
        step = next(row for row in told["rows"] if row["metric"] == "step.seconds")
        self.assertEqual(self.values("#answer .value"), step["values"])

    def test_compare_has_the_figures_of_the_screen(self):
        page, screen = self.page_of("compare", IB, ROCE, "--all")
        self.browser.open(page)
        self.browser.click_on("#rows-tools button")
        cells = self.browser.value("[...document.querySelectorAll('#rows tbody tr')].map((row) => [...row.children].map((cell) => cell.textContent))")
        plain = [[cell.replace("\u00a0", " ").replace("\u2212", "-").replace("\u00b5", "u") for cell in row] for row in cells]
        self.assertGreater(len(plain), 5)
        for label, *figures in plain:
            line = next(line for line in screen.splitlines() if line.startswith(label))
            self.assertEqual(re.split(r"\s{2,}", line[len(label):].strip()), figures, label)

    def test_the_bill_adds_up_to_everything(self):
        self.browser.open(self.page_of("compare", IB, ROCE)[0])
        for bill in self.browser.value("JSON.parse(document.getElementById('extra').textContent).bills"):
            together = sum(item["usd_each"]["usual"] * item["count"] for item in bill["items"] if not item["included_in_server"])
            self.assertAlmostEqual(together, bill["capital_usd"]["usual"], delta=1)
        cells = self.browser.value("[...document.querySelectorAll('#bills tbody tr')].map((row) => row.innerText)")
        self.assertTrue(any("ConnectX-7" in cell and "in the server" in cell for cell in cells), cells)
        self.assertEqual(sum("with cooling (PUE" in cell for cell in cells), 2)
        self.assertLessEqual(self.browser.value("Math.max(...[...document.querySelectorAll('#bills table')].map((each) => each.offsetWidth))"), 1140)
        self.assertNotIn("#", self.browser.value("document.getElementById('command').textContent"))
        self.assertGreater(self.browser.value("document.querySelectorAll('#remarks li').length"), 0)

    def test_the_median_of_validate_is_that_of_its_table(self):
        page, printed = self.page_of("validate", "korthikanti-2022", "--format", "json")
        self.browser.open(page)
        median = json.loads(printed)["families"]["korthikanti-2022"]["median_abs_error"]
        self.assertIn(f"{100 * median:.2f} %", self.browser.value("document.querySelector('#answer .value').textContent"))

    def test_compare_hides_what_does_not_differ_until_it_is_asked_for(self):
        self.browser.open(self.page_of("compare", IB, ROCE)[0])
        count = "document.querySelectorAll('#rows tbody tr').length"
        few = self.browser.value(count)
        self.browser.click_on("#rows-tools button")
        rows = len(self.browser.value("JSON.parse(document.getElementById('result').textContent).rows"))
        self.assertLess(few, rows)
        self.assertEqual(self.browser.value(count), rows)

    def test_validate_shows_every_case_and_family(self):
        page, printed = self.page_of("validate", "megascale", "--format", "json")
        told, shown = json.loads(printed), self.opened(page)
        self.assertEqual(shown, told)
        self.assertEqual(self.browser.value("document.querySelectorAll('#cases tbody tr').length"), len(told["cases"]))
        errors = self.browser.value("[...document.querySelectorAll('#cases tbody tr')].map((row) => +row.children[4].dataset.value)")
        self.assertEqual(sorted(errors), sorted(each["error"] for each in told["cases"]))
        self.assertEqual(self.browser.value("document.querySelectorAll('#families tbody tr').length"), len(told["families"]))

    def test_validate_writes_every_figure_in_its_own_unit(self):
        told = self.opened(self.page_of("validate", "zero-bubble", "zero-bubble-rates", "--format", "json")[0])
        rows = self.browser.value("[...document.querySelectorAll('#cases tbody tr')].map((row) => [row.children[0].textContent, row.children[2].textContent])")
        forms = {"step": r"s$", "collective": r"s$", "memory": r"GiB$", "share": r"%$", "ratio": r"^× \d"}
        figures = {each["name"]: each["figure"] for each in told["cases"]}
        self.assertLessEqual({"memory", "share", "ratio"}, set(figures.values()))
        for name, published in rows:
            self.assertRegex(published, forms[figures[name]], name)

    def test_explain_names_the_factor_it_was_asked_for(self):
        for asked in ("5", "20"):
            self.opened(self.page_of("explain", IB, "--faster", asked)[0])
            self.assertIn(f"Each part alone {asked} % faster", self.browser.value("document.getElementById('upgrade-hint').textContent"))

    def test_sweep_shows_the_best_point_and_every_other(self):
        if "sweep" not in topsim("--help").stdout:
            self.skipTest("this topsim has no sweep")
        shown = self.opened(self.page_of("sweep", IB, "--vary", "workload.plan.micro_batch=1,2", "--vary", "workload.plan.recompute=none,selective")[0])
        done = [row for row in shown["rows"] if row["status"] == "ok"]
        self.assertEqual(shown["best"]["figure"], "tokens_per_second")  # of which more is better
        self.assertEqual(self.values("#answer .value")[0], max(row["figures"]["tokens_per_second"] for row in done))
        self.assertEqual(self.browser.value("document.querySelectorAll('#rows tbody tr').length"), len(done))

    def test_sweep_takes_what_its_figures_are_from_its_data(self):
        shown = self.opened(self.page_of("sweep", IB, "--vary", "workload.plan.micro_batch=1,2", "--best", "busy_seconds")[0])
        busy = next(each for each in shown["figures"] if each["name"] == "busy_seconds")
        self.assertTrue(busy["more_is_better"])
        self.assertEqual(self.values("#answer .value")[0], max(row["figures"]["busy_seconds"] for row in shown["rows"]))
        self.assertIn(f"Best by {busy['label']}", self.browser.value("document.getElementById('sentence').textContent"))
        options = self.browser.value("[...document.querySelectorAll('#picture-tools option')].map((each) => each.textContent)")
        self.assertLessEqual(set(options), {each["label"] for each in shown["figures"]})
        self.assertEqual(self.browser.value("document.getElementById('notes').textContent"), "")
        self.assertIn("--best busy_seconds", self.browser.value("document.getElementById('command').textContent"))

    def test_sweep_says_that_points_ran_releases_that_nobody_named(self):
        # A graph of kernels, which none of the releases before 2024 has.
        words = ("sweep", *OLD, "--vary", "workload.compute.cuda_graph=false,true")
        self.opened(self.page_of(*words)[0])
        self.assertIn("megatron@2023 or megatron@2024", self.browser.value("document.getElementById('notes').innerText"))
        self.assertRegex(self.browser.value("document.getElementById('sentence').textContent"), r"cuda_graph true \(megatron@2024\)")
        rows = self.browser.value("[...document.querySelectorAll('#rows tbody tr')].map((row) => row.textContent)")
        self.assertTrue(all("megatron@202" in row for row in rows), rows)
        command = self.browser.value("document.getElementById('command').textContent")
        self.assertIn("--set workload.model=gpt3-2.7b --set workload.sequence=2048", command)

    def test_compare_says_releases_that_nobody_named_in_its_verdict(self):
        words = ("compare", *OLD, "--with", "workload.compute.cuda_graph=true", "--seeds", "1")
        self.opened(self.page_of(*words)[0])
        self.assertIn("is assumed to run megatron@2024: a part of the difference", self.browser.value("document.getElementById('sentence').innerText"))

    def test_sweep_says_which_points_cannot_be_built_and_never_calls_them_best(self):
        # The switches of the scenario are InfiniBand's: Ethernet's cables do not fit them.
        shown = self.opened(self.page_of("sweep", IB, "--vary", "topology.fabric.link=ib-ndr,roce-400g", "--best", "usd_per_hour")[0])
        self.assertEqual([row["can_be_built"] for row in shown["rows"]], [True, False])
        self.assertIn("link ib-ndr", self.browser.value("document.getElementById('sentence').textContent").split(";")[0])
        refused = self.browser.value("document.getElementById('failed').textContent")
        self.assertIn("roce-400g", refused)
        self.assertIn("has no ports for", refused)

    def test_sweep_says_which_points_do_not_fit_and_calls_another_best(self):
        # Four tensor ranks are quicker than eight, and need 104 of 80 GiB.
        words = ("sweep", IB, "--vary", "workload.plan.tp=4,8", "--allow-oom")
        shown = self.opened(self.page_of(*words)[0])
        self.assertEqual([row["fits"] for row in shown["rows"]], [False, True])
        sentence = self.browser.value("document.getElementById('sentence').textContent")
        self.assertIn("among the points that fit the memory: tp 8", sentence)
        self.assertNotIn("nearly full", sentence)
        rows = self.browser.value("[...document.querySelectorAll('#rows tbody tr')].map((row) => [row.className, row.textContent])")
        self.assertEqual([name for name, _ in rows], ["chosen", "unfit"])
        self.assertIn("--allow-oom", self.browser.value("document.getElementById('command').textContent"))
        self.assertIn("104 GiB of 80.0 GiB: does not fit", rows[1][1])
        self.assertIn("does not fit", self.browser.value("document.getElementById('picture').textContent"))
        self.opened(self.page_of(*words[:3], "workload.plan.tp=4", "--allow-oom")[0])
        self.assertIn("(no point fits the memory)", self.browser.value("document.getElementById('sentence').textContent"))

    def test_sweep_tells_equal_reasons_once_and_many_numbers_by_an_axis(self):
        seeds, batches = ",".join(map(str, range(1, 21))), "1,2,3"  # global_batch 128 does not divide into 3
        self.opened(self.page_of("sweep", IB, "--vary", f"run.seed={seeds}", "--vary", f"workload.plan.micro_batch={batches}", "--vary",
                                 "workload.plan.recompute=none,selective", "--network", "analytic")[0])
        reasons = self.browser.value("[...document.querySelectorAll('#failed tbody tr')].map((row) => [...row.children].map((cell) => cell.textContent))")
        self.assertEqual([row[:4] for row in reasons], [["1, 2 … 20 (20)", "3", "none, selective", "40"]])
        # A place for each of 20 seeds would have as many labels.
        labels = self.browser.value("[...document.querySelectorAll('#picture text')].map((text) => text.textContent)")
        self.assertIn("selective", labels)
        self.assertNotIn("17", labels)

    def test_compare_names_a_change_by_what_it_changes(self):
        plan = json.loads(IB.read_text())["workload"]["plan"] | {"pp": 4, "dp": 2}
        page = self.page_of("compare", IB, "--with", f"workload.plan={json.dumps(plan)}", "--seeds", "1")[0]
        self.opened(page)
        headline = self.browser.value("document.getElementById('headline').textContent")
        self.assertEqual(headline, "8xH100-ib or 8xH100-ib plan pp=4 dp=2")
        self.assertNotIn("{", self.browser.value("document.getElementById('sentence').textContent"))

    def test_compare_says_what_does_not_fit(self):
        shown = self.opened(self.page_of("compare", IB, "--with", "workload.plan.tp=4", "--set", "workload.plan.dp=null", "--allow-oom",
                                         "--seeds", "1")[0])
        self.assertIn("DOES NOT FIT the memory: 104 GiB of 80.0 GiB", shown["verdict"].split("\n")[0])
        self.assertIn("does not fit: 104 GiB of 80.0 GiB", self.browser.value("document.getElementById('answer').textContent"))

    def command(self):
        return self.browser.value("document.getElementById('command').textContent")

    def meaning_of_a_step(self):
        return self.browser.value("document.querySelector('#words dt').textContent + ': ' + document.querySelector('#words dd').textContent")

    def test_the_command_of_a_comparison_has_what_its_page_was_made_with(self):
        self.opened(self.page_of("compare", IB, "--with", "workload.plan.tp=4", "--set", "workload.plan.dp=null", "--allow-oom", "--seeds", "1",
                                 "--no-cost")[0])
        self.assertEqual(self.command(), "topsim compare 8xH100-ib.json 8xH100-ib-tp=4.json --seeds 1 --allow-oom --no-cost --html compare.html")
        self.opened(self.page_of("compare", IB, ROCE, "--seeds", "2")[0])
        self.assertEqual(self.command(), "topsim compare 8xH100-ib.json 8xH100-roce.json --seeds 2 --html compare.html")

    def test_the_command_of_a_sweep_has_what_was_asked_for_in_its_order(self):
        self.opened(self.page_of("sweep", IB, "--vary", "workload.plan.tp=8,4", "--vary", "workload.plan.zero_group=all,8", "--pareto", "mfu,watts",
                                 "--best", "step_time", "--allow-oom")[0])
        self.assertEqual(self.command(), "topsim sweep 8xH100-ib.json --vary workload.plan.tp=8,4 --vary workload.plan.zero_group=all,8 "
                                         "--best step_seconds --pareto mfu,watts --allow-oom --html sweep.html")
        self.opened(self.page_of("sweep", IB, "--vary", "run.seed=1")[0])
        self.assertEqual(self.command(), "topsim sweep 8xH100-ib.json --vary run.seed=1 --html sweep.html")

    def test_an_interrupted_sweep_says_what_was_asked_for_and_what_was_done(self):
        whole = "topsim sweep 8xH100-ib.json --vary network.model={} --html sweep.html"
        text = lambda name: self.browser.value(f"document.getElementById('{name}').textContent")

        def stored(name, rows):
            def ready(_):
                if not self.path(name).exists():
                    return False
                with contextlib.closing(sqlite3.connect(self.path(name))) as database, contextlib.suppress(sqlite3.Error):
                    return database.execute(f"SELECT COUNT(*) FROM {'rows' if rows else 'points'}").fetchone()[0] > 0  # points have begun
                return False
            return ready
        for name, models, rows in (("none", "packet", 0), ("one", "analytic,packet", 1)):
            page = self.page_of_interrupted("sweep", IB, "--vary", f"network.model={models}", "--out", self.path(name + ".sqlite"), "--jobs", "1",
                                            ready=stored(name + ".sqlite", rows))
            shown = self.opened(page)
            self.assertEqual((len(shown["rows"]), shown["complete"]), (rows, False))
            self.assertEqual(self.command(), whole.format(models))
            self.assertIn(f"{rows} of {rows + 1} point", text("description"))
            self.assertIn("Best by" if rows else "No point was finished.", text("sentence"))

    def test_figures_below_one_have_three_digits(self):
        # As the table of the same sweep: a millionth of a dollar is no 0.000.
        words = ("sweep", ROOT / "configs/8xH100-decode.json", "--set", "workload.task=prefill", "--set", "workload.sequence=1024", "--vary",
                 "workload.model=gpt2,llama3.2-1b", "--vary", "workload.plan.tp=1", "--best", "usd_per_million_tokens")
        page, printed = self.page_of(*words)
        self.opened(page)
        cards = self.browser.value("[...document.querySelectorAll('#answer .value')].map((card) => card.textContent)")
        self.assertRegex(cards[0], r"^0\.000[1-9]\d\d USD$")
        self.assertIn(cards[0], printed)
        self.assertIn("first token", self.meaning_of_a_step())

    def test_words_are_of_what_was_run(self):
        ring = ROOT / "configs/traces/ring8.json"
        for words, meant in ((("sweep", ring, "--vary", "run.seed=1"), "step: one replay of the trace"),
                             (("compare", ring, "--with", "topology.node=hgx-h200", "--seeds", "1"), "step: one replay of the trace"),
                             (("compare", ROOT / "configs/8xH100-decode.json", "--with", "workload.plan.tp=4", "--seeds", "1"), "step: one round of generation"),
                             (("sweep", IB, "--vary", "run.seed=1"), "step: one round of training")):
            with self.subTest(words=words):
                shown = self.opened(self.page_of(*words)[0])
                self.assertIn(meant, self.meaning_of_a_step())
                self.assertEqual("training" in self.meaning_of_a_step(), "training" in meant)
                if ring in words:
                    labels = {each["label"] for each in shown.get("figures", shown["rows"])}
                    self.assertIn("exposed messages", labels)
                    self.assertNotIn("exposed pipeline transfer", labels | {self.browser.value("document.getElementById('main').innerText")})

    def test_compare_names_what_a_change_leaves_out(self):
        # The release's recompute is none; the micro-batch and the overlap are those of the file.
        plan = {"tp": 8, "pp": 1, "dp": 8, "global_batch": 128, "schedule": "1f1b"}
        self.opened(self.page_of("compare", IB, "--with", f"workload.plan={json.dumps(plan)}", "--allow-oom", "--seeds", "1", "--no-cost")[0])
        headline = self.browser.value("document.getElementById('headline').textContent")
        self.assertEqual(headline, "8xH100-ib or 8xH100-ib plan pp=1 dp=8 (recompute left out)")

    def test_sweep_says_whose_memory_is_nearly_full_and_each_warning_by_itself(self):
        # Of the switches' ports InfiniBand XDR has none; two sequences a micro-batch fill 79.3 of 80 GiB.
        self.opened(self.page_of("sweep", IB, "--vary", "topology.fabric.link=ib-ndr,ib-xdr", "--vary", "workload.plan.micro_batch=1,2")[0])
        sentence = self.browser.value("document.getElementById('sentence').textContent")
        self.assertRegex(sentence, "Best by tokens per second: link ib-ndr · micro_batch 2.*furthest from it.*The best point's memory is nearly full: 79.3 GiB")
        rows = self.browser.value("[...document.querySelectorAll('#failed tbody tr')].map((row) => [...row.children].map((cell) => cell.textContent))")
        self.assertEqual([row[:3] for row in rows], [["ib-xdr", "1, 2", "2"], ["ib-xdr", "1, 2", "2"], ["ib-xdr", "2", "1"]])
        for row, begins in zip(rows, ("a port of ConnectX-7", "NVIDIA QM9700 (managed) NDR has no ports", "memory is nearly full")):
            self.assertTrue(row[3].startswith(begins), row)

    def test_the_tallest_bar_of_errors_has_its_label_and_its_count(self):
        told = self.opened(self.page_of("validate", "korthikanti-2022", "--format", "json")[0])
        measured = [each["error"] for each in told["cases"] if each["figure"] == "step"]
        near = sum(0 <= error < 0.05 for error in measured)
        self.browser.open(self.page_of("validate", "korthikanti-2022")[0], width=390)
        labels = self.browser.value("[...document.querySelectorAll('#errors text')].map((text) => text.textContent)")
        self.assertIn(str(near), labels)
        self.assertIn("0 to 5 %", labels)
        cards = self.browser.value("document.getElementById('answer').textContent")
        self.assertIn(f"{len(measured)} steps, {len(told['cases']) - len(measured)} comparisons", cards)


if __name__ == "__main__":
    unittest.main()
