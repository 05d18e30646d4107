"""The page of a run in headless Chromium: opens from disk without a console error, shows what result.json says."""

import html
import json
import os
import re
import sys
import unittest

sys.path.insert(0, os.path.dirname(__file__))
from pages import ROOT, SIZES, Pages, scenario_of, topsim
from page_data import page_data, page_text


def section(document, name):
    """The text of one element with an id, up to the next section."""
    return document.split(f'id="{name}"', 1)[1].split("</section>", 1)[0]


def rows_of(document, name):
    """The figures behind a table's cells, row by row."""
    body = re.search(r"<tbody>(.*?)</tbody>", document.split(f'<div id="{name}">', 1)[1], re.S).group(1)
    return [[html.unescape(cell) for cell in re.findall(r'data-value="([^"]*)"', row)]
            for row in re.findall(r"<tr.*?</tr>", body, re.S)]


class RunPage(Pages):
    def made_for(self, accelerators):
        """(page file, result, document, console), opened once."""
        key = ("opened", accelerators)
        if key not in self.made:
            page, result = self.run_of(accelerators)
            self.browser.open(page)
            self.made[key] = (page, result, self.browser.document(), list(self.browser.console))
        return self.made[key]

    def test_every_size_opens_without_a_console_message_and_most_under_500_kilobytes(self):
        for accelerators in SIZES:
            with self.subTest(accelerators=accelerators):
                page, _, document, console = self.made_for(accelerators)
                self.assertEqual(console, [])
                self.assertRegex(document, r'data-drawn="\d+"')
                # 353 of them are the scripts; 16 stages have more to show.
                self.assertLess(page.stat().st_size, 500_000 if accelerators <= 1024 else 550_000)

    def test_the_data_is_the_result_byte_for_byte(self):
        page, _ = self.run_of(64)
        text = (page.parent / "result.json").read_text()
        self.assertEqual(page_text(page.read_text(), "result"), text)
        self.browser.open(page)
        self.assertEqual(self.browser.value("document.getElementById('result').textContent"), text)

    def test_a_browser_that_cannot_unpack_says_which_can(self):
        page, _ = self.run_of(8)
        without = self.browser.call("Page.addScriptToEvaluateOnNewDocument", source="delete window.DecompressionStream")
        try:
            self.browser.open(page, drawn="document.getElementById('main')?.textContent.includes('cannot unpack')")
        finally:
            self.browser.call("Page.removeScriptToEvaluateOnNewDocument", **without)
        self.assertRegex(self.browser.value("document.getElementById('main').innerText"), r"Chrome .* \d+.*Firefox .* \d+.*Safari")
        self.assertEqual(self.browser.console, [])

    def test_the_strictest_policy_that_allows_a_pages_own_scripts_and_styles_draws_it(self):
        text, policy = self.run_of(8)[0].read_text(), "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"
        strict = self.path("strict.html")
        strict.write_text(text.replace("<head>", f'<head><meta http-equiv="Content-Security-Policy" content="{policy}">', 1))
        self.browser.open(strict)
        self.assertEqual(self.browser.console, [])

    def test_a_section_in_the_address_is_what_is_seen(self):
        self.browser.open(self.run_of(64)[0], "#collectives-section")
        self.assertLess(abs(self.browser.value("document.getElementById('collectives-section').getBoundingClientRect().top")), 200)

    def test_the_answer_equals_result_json(self):
        for accelerators in SIZES:
            with self.subTest(accelerators=accelerators):
                _, result, document, _ = self.made_for(accelerators)
                shown = {key: float(value) for key, value in re.findall(
                    r'id="(step-time|tokens|mfu|busy|memory-use)" data-value="([^"]*)"', document)}
                self.assertEqual(shown["step-time"], result["step"]["seconds"])
                self.assertEqual(shown["tokens"], result["throughput"]["tokens_per_second"])
                self.assertEqual(shown["mfu"], result["throughput"]["mfu"])
                self.assertEqual(shown["memory-use"], result["memory"]["per_accelerator_bytes"])
                self.assertAlmostEqual(shown["busy"], 1 - result["accelerators"]["idle_fraction"], places=9)

    def test_the_sentence_names_the_largest_reason(self):
        _, result, document, _ = self.made_for(64)
        idle = result["accelerators"]["idle_seconds"]
        largest = max(idle, key=idle.get).replace("_", " ")
        sentence = re.search(r'id="sentence">(.*?)</p>', document).group(1)
        self.assertIn(largest, sentence)
        self.assertIn(f"{100 * idle[largest.replace(' ', '_')] / result['step']['seconds']:.1f} %", sentence)

    def test_the_tables_hold_the_rows_of_result_json(self):
        _, result, document, _ = self.made_for(64)
        links = rows_of(document, "links")
        self.assertEqual(sorted(row[0] for row in links), sorted(row["id"] for row in result["links"]))
        self.assertEqual([float(row[3]) for row in links],
                         sorted((row["utilization"] for row in result["links"]), reverse=True))
        collectives = rows_of(document, "collectives")
        self.assertEqual(sorted(float(row[6]) for row in collectives),
                         sorted(row["bus_bandwidth"] for row in result["collectives"]))
        self.assertEqual([float(row[4]) for row in rows_of(document, "ranks")],
                         [row["busy_seconds"] for row in result["ranks"]])

    def test_calls_and_bytes_are_those_of_a_step_however_many_were_measured(self):
        tables = []
        for steps in (1, 3):
            self.browser.open(self.page_of("run", ROOT / "configs/8xH100-ib.json", "--set", f"run.steps={steps}", "--quiet")[0])
            tables.append(self.browser.value("""['#links', '#collectives'].map((id) => [...document.querySelectorAll(id + ' tbody tr')]
                .map((row) => [...row.children].slice(id === '#links' ? 5 : 2, id === '#links' ? 6 : 3).map((cell) => +(+cell.dataset.value).toPrecision(4))).sort())"""))
        self.assertEqual(*tables)
        self.assertGreater(tables[0][0][0][0], 0)

    def test_the_sentence_speaks_of_what_ran(self):
        said = {}
        for name, words in {"decode": ["configs/8xH100-decode.json"],
                            "trace": ["configs/traces/ring8.json"], "train": ["configs/8xH100-ib.json"]}.items():
            self.browser.open(self.page_of("run", ROOT / words[0], *words[1:], "--quiet")[0])
            self.assertEqual(self.browser.console, [])
            said[name] = self.browser.value("document.getElementById('sentence').innerText + document.getElementById('answer').innerText")
            meaning = self.browser.value("document.querySelector('#words dd').innerText")  # of a step
            self.assertEqual("all weights are updated" in meaning, name == "train")
            self.assertIn({"decode": "its next token", "trace": "one replay of the trace", "train": "all weights are updated"}[name], meaning)
        self.assertIn("One step of decoding", said["decode"])
        self.assertNotIn("NVLink", said["decode"])  # latency holds it up
        self.assertIn("The trace takes", said["trace"])
        self.assertNotRegex(said["trace"], "pipeline stages|overlap_p2p|tokens/s")
        self.assertIn("not known for a trace", said["trace"])
        self.assertIn("One training step takes", said["train"])

    def test_the_advice_holds_for_the_task_and_the_plan(self):
        # What each change does to these runs (step times, seconds): 8xH100-decode 0.0166, with tp 4 0.0219; 8xH100-ib 17.7, with user
        # buffers 16.6, with tp 4 more memory than there is; prefilling 11.4, with tp 4 9.2; alibaba-hpn7 2.35, with
        # overlap_param_gather=false 1.67, with pp 4 2.46, with two virtual stages 1.28.
        cases = [
            ("8xH100-decode", [], [], ["smaller tp"]),
            ("8xH100-decode", ["workload.task=prefill"], ["smaller tp"], ["user buffers"]),
            ("8xH100-ib", [], ["user buffers (tp_overlap=userbuffers)"], ["smaller tp"]),
            ("8xH100-ib", ["workload.plan.tp_overlap=userbuffers"], [], ["user buffers", "smaller tp"]),
            ("8xV100-dgx1", [], ["smaller tp"], ["user buffers"]),  # Transformer Engine does not run on V100
            ("alibaba-hpn7", [], ["overlap_param_gather false", "virtual_stages"], ["fewer stages"]),
            ("alibaba-hpn7", ["workload.plan.overlap_param_gather=false"], ["virtual stages"], ["overlap_param_gather"]),
            ("megascale", [], ["more micro-batches"], ["overlap_param_gather", "virtual stages", "fewer stages"]),
        ]
        for name, changes, said, unsaid in cases:
            with self.subTest(name=name, changes=changes):
                page, _ = self.page_of("run", ROOT / f"configs/{name}.json", "--quiet", *(word for change in changes for word in ("--set", change)))
                self.browser.open(page)
                sentence = self.browser.value("document.getElementById('sentence').innerText")
                self.assertRegex(sentence, "Accelerators sit idle mostly|What shortens it")
                for words in said:
                    self.assertIn(words, sentence)
                for words in unsaid:
                    self.assertNotIn(words, sentence)

    def test_no_figure_of_the_drawing_lies_on_a_box(self):
        # Of a torus: with a pipeline its chips are of two kinds, with lines between them.
        stages = [word for value in ("framework=megatron", "plan.pp=2", "plan.dp=8", "plan.micro_batch=1") for word in ("--set", f"workload.{value}")]
        for scenario, more in (("mixtral-8x7b-64xH100", []), ("tpu-v4", stages), ("16384xH100-llama3-405b", [])):
            page, _ = self.page_of("run", ROOT / f"configs/{scenario}.json", "--quiet", *more)
            for width in (1400, 1280, 390):
                self.browser.open(page, width=width)
                hits = self.browser.value("""(() => {
                    const texts = [...document.querySelectorAll('#topology text')].map((each) => [each.textContent, each.getBoundingClientRect()]);
                    const [figures, titles] = [texts.filter(([text]) => /^[\d.]+ %$/.test(text)), texts.filter(([text]) => / × \d/.test(text))];
                    return [figures.length, titles.length, figures.flatMap(([text, a]) => titles.filter(([, b]) =>
                      a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom).map(([title]) => text + ' on ' + title))]; })()""")
                self.assertGreater(hits[0], 0)
                self.assertGreater(hits[1], 0)
                self.assertEqual(hits[2], [], (scenario, width))

    def test_what_the_boxes_of_a_large_cluster_say_lies_in_them(self):
        # A box is a path with round corners; its texts are those whose middle it holds.
        for scenario in ("16384xH100-llama3-405b", "8xH100-faults"):
            page, _ = self.page_of("run", ROOT / f"configs/{scenario}.json", "--quiet")
            for width in (1400, 390):
                self.browser.open(page, width=width)
                held, over, cut = self.browser.value("""(() => {
                    const drawing = document.querySelector('#topology svg'), frame = drawing.getBoundingClientRect();
                    const rects = (name) => [...drawing.querySelectorAll(name)].map((each) => [each.textContent, each.getBoundingClientRect()]);
                    const boxes = rects('path').map(([, box]) => box).filter((box) => box.height > 34 && box.height < 40 && box.width > 90 && box.width < 130);
                    const texts = rects('text'), inside = texts.map(([text, at]) => [text, at, boxes.find((box) => at.left + at.width / 2 > box.left &&
                      at.left + at.width / 2 < box.right && at.top + at.height / 2 > box.top && at.top + at.height / 2 < box.bottom)]).filter(([,, box]) => box);
                    return [inside.length, inside.filter(([, at, box]) => at.left < box.left || at.right > box.right).map(([text]) => text),
                      texts.filter(([, at]) => at.top < frame.top || at.bottom > frame.bottom || at.left < frame.left || at.right > frame.right).map(([text]) => text)]; })()""")
                self.assertGreater(held, 10, (scenario, width))
                self.assertEqual((over, cut), ([], []), (scenario, width))

    def test_a_failed_part_is_marked_and_a_single_one_named(self):
        self.browser.open(self.page_of("run", ROOT / "configs/8xH100-faults.json", "--quiet")[0])
        drawing = self.browser.value("document.getElementById('topology').textContent")
        self.assertIn("nic down", drawing)
        self.assertNotRegex(drawing, r"× 1(?![\d,])")

    def test_goodput_is_shown_where_the_scenario_asks_for_it(self):
        page, _ = self.page_of("run", ROOT / "configs/8xH100-faults.json", "--quiet")
        of = page_data(page.read_text(), "result")["reliability"]
        self.browser.open(page)
        self.assertEqual(self.browser.console, [])
        self.assertEqual(self.browser.value("+document.getElementById('goodput').dataset.value"), of["goodput"]["usual"])
        note = self.browser.value("document.getElementById('goodput').parentElement.innerText")
        self.assertIn(f"{100 * of['goodput']['usual']:.1f}", note)
        self.assertIn(f"stops every {1 / of['interruptions_per_day']['usual']:.1f} days", note)
        self.assertIn(f"checkpoints every {of['checkpoint_interval_seconds'] / 3600:.2f} h", note)
        document = self.browser.document()
        shown = [(float(row[1]), float(row[3]), float(row[4])) for row in rows_of(document, "failure-sources")]
        self.assertEqual(sorted(shown), sorted((each["count"], each["per_year"]["usual"], each["count"] * each["per_year"]["usual"])
                                               for each in of["sources"]))
        # The stops of a year, over all that fails, are those of a day times its days.
        self.assertAlmostEqual(sum(row[2] for row in shown), 365.25 * of["interruptions_per_day"]["usual"], delta=0.01)
        self.assertIn("Daly", section(document, "failures"))
        self.browser.open(page, width=390)
        self.assertLessEqual(self.browser.value("document.documentElement.scrollWidth"), 390)
        self.assertNotIn('id="failures"', self.made_for(8)[2].split('id="main"', 1)[1].split("<template", 1)[0])

    def test_the_drawing_counts_what_it_folds(self):
        for accelerators, shape in ((8, "GPU × 8"), (64, "GPU × 32"), (1024, "GPU × 256"), (16384, "GPU × 16&nbsp;384")):
            with self.subTest(accelerators=accelerators):
                self.assertIn(shape, section(self.made_for(accelerators)[2], "topology"))

    def test_the_timeline_sums_to_the_idle_seconds_of_each_class(self):
        page, result, _, _ = self.made_for(1024)
        timeline = page_data(page.read_text(), "extra")["timeline"]
        step = result["step"]["seconds"]
        self.assertEqual(len(timeline["tracks"]), len(result["ranks"]))
        for track, rank in zip(timeline["tracks"], result["ranks"]):
            idle, total = {}, 0.0
            for i in range(0, len(track["cells"]), 4):
                _, length, state, share = track["cells"][i:i + 4]
                total += length * share * 1e-12
                if state >= timeline["busy_states"]:
                    name = timeline["states"][state]
                    idle[name] = idle.get(name, 0) + length * share * 1e-12
            self.assertAlmostEqual(total, step, delta=2e-3 * step)
            for reason, seconds in rank["idle_seconds"].items():
                self.assertAlmostEqual(idle.get(reason, 0), seconds, delta=2e-3 * step, msg=reason)

    def test_what_only_a_second_processor_works_is_drawn(self):
        # 100 us on processor 0, beside it from the beginning 300 us on processor 1, then 50 us on 0: of 350 us
        # the first works 150, and 200 are the second's alone.
        self.path("two.goal").write_text("num_ranks 1\nrank 0 {\na: calc 100000 cpu 0\nb: calc 300000 cpu 1\n"
                                         "c: calc 50000 cpu 0\nc requires b\n}\n")
        self.path("two.json").write_text(json.dumps({
            "topology": {"node": "hgx-h100", "nodes": 1, "accelerators": 1},
            "workload": {"trace": {"format": "goal", "path": str(self.path("two.goal"))}},
            "run": {"steps": 1, "warmup": 0}}))
        page, _ = self.page_of("run", self.path("two.json"), "--quiet")
        timeline = page_data(page.read_text(), "extra")["timeline"]
        seconds = {}
        for track in timeline["tracks"]:
            for i in range(0, len(track["cells"]), 4):
                _, length, state, share = track["cells"][i:i + 4]
                seconds[timeline["states"][state]] = seconds.get(timeline["states"][state], 0) + length * share * 1e-12
        self.assertAlmostEqual(seconds["other_processor"], 200e-6, delta=1e-6)
        self.assertAlmostEqual(sum(seconds.values()), 350e-6, delta=1e-5)
        self.browser.open(page)
        self.assertIn("another of its processors works", self.browser.value("document.getElementById('timeline-hint').textContent"))
        self.assertIn("other processor", self.browser.value("document.getElementById('time').innerText"))

    def test_a_thousand_ranks_are_drawn_within_two_seconds(self):
        page, _ = self.run_of(1024)
        self.browser.call("Performance.enable", timeDomain="threadTicks")  # other work of the machine is not the page's
        self.browser.open(page)
        spent = {each["name"]: each["value"] for each in self.browser.call("Performance.getMetrics")["metrics"]}
        self.browser.call("Performance.disable")
        self.assertGreater(spent["TaskDuration"], 0.01)
        self.assertLess(spent["TaskDuration"], 2)

    def test_every_link_of_the_heat_map_is_painted_when_the_page_says_so(self):
        # Where a link is busiest the pixel is neither clear nor white. Names take 276 pixels at the left, 14 are free at the
        # right, 4 above the rows and 26 below.
        self.browser.open(self.run_of(1024)[0])
        painted, rows = self.browser.value("""(() => {
            const { timeline } = JSON.parse(document.getElementById('extra').textContent);
            const canvas = document.querySelector('#heat canvas'), [w, h] = [canvas.width, canvas.height];
            const pixels = canvas.getContext('2d').getImageData(0, 0, w, h).data, rows = timeline.rows.slice(0, timeline.shown);
            const painted = rows.filter(({ bins }, row) => {
              const x = 276 + (bins.indexOf(Math.max(...bins)) + 0.5) * (w - 290) / bins.length;
              const at = 4 * (Math.round(4 + (row + 0.5) * (h - 30) / rows.length) * w + Math.round(x));
              return pixels[at + 3] === 255 && pixels[at + 2] < 230;
            });
            return [painted.length, rows.length]; })()""")
        self.assertEqual(rows, 40)
        self.assertEqual(painted, rows)

    def test_a_run_without_communication_has_no_empty_tables(self):
        self.browser.open(self.page_of("run", ROOT / "configs/1xH100.json", "--quiet")[0])
        self.assertEqual(self.browser.console, [])
        left = self.browser.value("[...document.querySelectorAll('section')].map((section) => section.id)")
        self.assertNotIn("collectives-section", left)
        self.assertNotIn("heat-section", left)
        self.assertIn("never wait", self.browser.value("document.getElementById('sentence').textContent"))

    def test_a_run_without_a_measured_step_shows_no_figure_of_one(self):
        page = self.page_of_interrupted("run", ROOT / "configs/8xH100-ib.json", "--network", "packet", "--progress", "json",
                                        ready=lambda said: re.search(r'"events":[1-9]', said))
        self.browser.open(page)
        self.assertEqual(self.browser.console, [])
        self.assertIn("before its first measured step", self.browser.value("document.getElementById('banner').textContent"))
        cards = dict(self.browser.value("[...document.querySelectorAll('#answer .card')].map((card) => [card.children[0].textContent, card.children[1].textContent + ' ' + card.children[2].textContent])"))
        memory = cards.pop("Memory of the fullest")  # what the plan needs is known
        self.assertIn("of 80.0 GiB", memory)
        self.assertEqual(set(cards.values()), {"– no step was measured"})
        self.assertEqual(len(cards), 4)
        text = self.browser.value("document.getElementById('main').innerText")
        self.assertNotRegex(text, "training step takes|never wait|No accelerator waits|for a trace|a step\\b")
        left = self.browser.value("[...document.querySelectorAll('section')].map((section) => section.id)")
        self.assertFalse({"why", "time", "path"} & set(left), left)

    def test_the_command_makes_this_page_again(self):
        ib, folder = ROOT / "configs/8xH100-ib.json", self.path("again")
        folder.mkdir()
        # One stage of eight needs 82.8 of 80 GiB.
        unfit = ("--set", "workload.plan.pp=1", "--set", "workload.plan.dp=8")
        for words, said in ((("run", ib), "topsim run 8xH100-ib.json --html report.html"),
                            (("run", ib, *unfit, "--allow-oom"), "topsim run 8xH100-ib.json --allow-oom --html report.html"),
                            (("explain", ib, *unfit, "--faster", "12.5"), "topsim explain 8xH100-ib.json --faster 12.5 --html report.html")):
            with self.subTest(said):
                page, _ = self.page_of(*words, "--quiet")
                self.browser.open(page)
                self.assertEqual(self.browser.value("document.getElementById('command').textContent"), said)
                saved = folder / "8xH100-ib.json"
                saved.write_text(self.browser.value("document.getElementById('scenario').textContent"))
                _, command, _, *more, _, _ = said.split()
                again, _ = self.page_of(command, saved, *more, "--quiet")
                told, retold = (page_data(each.read_text(), "result") for each in (page, again))
                self.assertEqual([retold[key] for key in ("step", "memory", "links")], [told[key] for key in ("step", "memory", "links")])
                told, retold = (page_data(each.read_text(), "extra") for each in (page, again))
                self.assertEqual(retold.get("what_if"), told.get("what_if"))

    def test_a_rank_in_the_address_marks_its_class(self):
        page, _ = self.run_of(64)
        self.browser.open(page, "#rank=35")  # the second stage: ranks 32 to 63
        chosen = self.browser.value("[...document.querySelectorAll('tr.chosen td:first-child')].map((cell) => cell.dataset.value)")
        self.assertEqual(chosen, ["32"])
        self.assertEqual(self.browser.console, [])

    def test_the_page_loads_nothing_from_elsewhere(self):
        text = self.made_for(8)[0].read_text()
        self.assertEqual(re.findall(r'(?:src|href)="(?!data:|#)[^"]*"', text.split("<script")[0]), [])
        self.assertNotRegex(text, r"<script[^>]+src=|<link[^>]+stylesheet|@import")

    def test_the_same_run_makes_the_same_bytes(self):
        page, _, _, _ = self.made_for(64)
        again = self.path("again.html")
        topsim("run", page.parent / "case.json", "--html", again, "--quiet")
        self.assertEqual(again.read_bytes(), page.read_bytes())

    def test_text_of_the_user_cannot_become_part_of_the_page(self):
        scenario = scenario_of(8)
        scenario["description"] = "</script><script>console.error('broken out')</script><b>&amp;"
        self.path("evil.json").write_text(json.dumps(scenario))
        self.browser.open(self.page_of("run", self.path("evil.json"), "--quiet")[0])
        self.assertEqual(self.browser.console, [])
        self.assertEqual(self.browser.value("document.getElementById('description').textContent"), scenario["description"])


class Sources(unittest.TestCase):
    def test_pictures_of_python_have_the_colours_of_the_page(self):
        script = (ROOT / "sim/report/html/charts.js").read_text()
        page = dict(re.findall(r'(\w+): "(#[0-9a-f]{6})"', script.split("const stateColours", 1)[1].split("};", 1)[0]))
        plots = dict(re.findall(r'"(\w+)": "(#[0-9a-f]{6})"', (ROOT / "python/topsim/plots.py").read_text()))
        del plots["busy"]
        self.assertGreater(len(plots), 15)
        self.assertEqual(plots, {name: page[name] for name in plots})

    def test_the_packed_library_has_what_the_pages_draw_with_and_nothing_else(self):
        # A series or component that is not in library.js is left out without a word.
        folder = ROOT / "sim/report/html"
        library = (folder / "library.js").read_text()
        scripts = "".join(path.read_text() for path in sorted(folder.glob("*.js")) if path.name != "library.js")
        of_axes = {"value", "category", "log", "inside", "slider", "scroll", "shadow", "solid", "dashed", "dataZoom"}
        shapes = {"group", "rect", "text", "circle", "bezierCurve"}  # of custom series; "line" is one, too
        charts = {name.lower() for name in re.findall(r"(\w+)Chart\b", library)}
        self.assertEqual(set(re.findall(r'\btype: "(\w+)"', scripts)) - of_axes - shapes, charts)
        packed = set(re.findall(r"\b([A-Z]\w+)Component\b", library))
        parts = {"Grid", "Tooltip", "DataZoom", "Legend", "MarkArea", "MarkLine", "MarkPoint", "Parallel", "VisualMap", "Polar", "Radar", "Geo", "Calendar",
                 "Toolbox", "Brush", "Graphic", "Dataset"}
        used = {part for part in parts if re.search(rf"\b{part[0].lower()}{part[1:]}: ", scripts)}
        self.assertEqual({re.sub("(Inside|Slider|Scroll)$", "", part) for part in packed}, used)

    def test_the_lock_file_names_no_registry(self):
        lock = json.loads((ROOT / "sim/report/html/package-lock.json").read_text())
        self.assertNotIn("://", json.dumps(lock))
        for name, package in lock["packages"].items():
            self.assertNotIn("resolved", package)
            if name:
                self.assertIn("integrity", package)


if __name__ == "__main__":
    unittest.main()
