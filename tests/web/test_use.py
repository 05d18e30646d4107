"""How people use the page of a run: click, keys, a telephone, the dark, paper."""

import os
import re
import sys
import unittest

sys.path.insert(0, os.path.dirname(__file__))
from pages import Pages


class Use(Pages):
    def text(self, selector):
        return self.browser.value(f"document.querySelector('{selector}').innerText")

    def test_a_click_on_a_line_of_the_drawing_shows_its_figures_and_its_curve(self):
        page, result = self.run_of(64)
        self.browser.open(page)
        self.assertTrue(self.browser.value("document.getElementById('series').hidden"))
        at = self.browser.value("""(() => { document.getElementById('topology').scrollIntoView({ behavior: 'instant' });
            const label = [...document.querySelectorAll('#topology text')].find((each) => / %$/.test(each.textContent));
            const box = label.getBoundingClientRect(); return [box.left + box.width / 2, box.top + box.height / 2]; })()""")
        self.browser.click(*at)
        self.assertFalse(self.browser.value("document.getElementById('series').hidden"))
        self.assertGreater(self.browser.value("document.querySelectorAll('#series svg path').length"), 4)
        details = self.text("#details")
        self.assertIn("-> node", details)
        self.assertIn("mean", details)
        self.assertEqual(self.browser.console, [])

    def test_a_row_of_the_table_of_links_opens_the_same_curve(self):
        page, result = self.run_of(64)
        self.browser.open(page)
        self.browser.click_on("#links tbody tr td")
        busiest = max(result["links"], key=lambda link: link["utilization"])
        self.assertIn(busiest["id"], self.text("#details"))
        self.assertFalse(self.browser.value("document.getElementById('series').hidden"))

    def test_the_curve_of_a_link_has_the_mean_that_the_step_had(self):
        # Every measured step is alike here, so the mean of the last one's bins is the mean of all.
        page, result = self.run_of(64)
        self.browser.open(page)
        rows = self.browser.value("JSON.parse(document.getElementById('extra').textContent).timeline.rows")
        of = {link["id"]: link for link in result["links"]}
        self.assertGreater(len(rows), 3)
        for row in rows:
            mean = sum(row["bins"]) / len(row["bins"]) / 1000
            self.assertAlmostEqual(mean, of[row["id"]]["utilization"], delta=2e-3 + 0.02 * mean, msg=row["id"])

    def test_the_buttons_and_keys_of_the_timeline_zoom(self):
        page, _ = self.run_of(64)
        self.browser.open(page)
        pixels = "document.querySelector('#timeline canvas').toDataURL().length"
        whole = self.browser.value(pixels)
        self.browser.click_on("#timeline-tools button")
        zoomed = self.browser.value(pixels)
        self.assertNotEqual(whole, zoomed)
        for _ in range(2):  # the theme and back draw it again
            self.browser.key("t")
        self.assertEqual(self.browser.value(pixels), zoomed)
        self.browser.value("document.getElementById('timeline').focus()")
        self.browser.key("0")
        self.assertEqual(self.browser.value(pixels), whole)

    def test_the_scale_of_the_timeline_follows_the_zoom(self):
        page, _ = self.run_of(64)
        self.browser.open(page)
        # Grid lines, which stand where the labels do: what is painted in the first gap between two tracks.
        lines = """(() => {
          const canvas = document.querySelector("#timeline canvas"), y = JSON.parse(document.getElementById("extra").textContent).timeline.tracks.length <= 4 ? 60 : 40;
          const row = canvas.getContext("2d").getImageData(0, y * devicePixelRatio, canvas.width, 1).data;
          const painted = [...Array(canvas.width).keys()].filter((x) => row[4 * x + 3] > 0);
          return painted.filter((x) => !painted.includes(x - 1)).length;
        })()"""
        whole = self.browser.value(lines)
        self.assertGreater(whole, 3)
        self.browser.value("[...Array(5)].forEach(() => document.querySelector('#timeline-tools button').click())")
        self.assertGreater(self.browser.value(lines), 3)  # of a 32nd of the step; lines for the whole step leave it 2 or 3

    def test_keys_switch_the_theme_and_list_themselves(self):
        page, _ = self.run_of(8)
        self.browser.open(page)
        self.browser.key("t")
        self.assertEqual(self.browser.value("document.documentElement.dataset.theme"), "dark")
        self.browser.key("t")
        self.browser.key("?")
        self.assertTrue(self.browser.value("document.getElementById('help').open"))

    def test_a_heading_sorts_its_table(self):
        page, result = self.run_of(64)
        self.browser.open(page)
        self.browser.click_on("#collectives [data-column='6']")
        shown = self.browser.value("[...document.querySelectorAll('#collectives tbody tr')].map((row) => +row.children[6].dataset.value)")
        self.assertEqual(shown, sorted((row["bus_bandwidth"] for row in result["collectives"]), reverse=True))

    def test_nothing_is_wider_than_a_telephone(self):
        for accelerators in (8, 1024):
            with self.subTest(accelerators=accelerators):
                self.browser.open(self.run_of(accelerators)[0], width=390)
                self.assertLessEqual(self.browser.value("document.documentElement.scrollWidth"), 390)
                self.assertEqual(self.browser.console, [])

    def test_text_can_be_read_in_the_light_and_in_the_dark(self):
        # Contrast of WCAG 2: (L1 + 0.05) / (L2 + 0.05), 4.5 for text.
        contrast = """(() => { const luminance = (text) => { const [r, g, b] = text.match(/\\d+/g).map((v) => v / 255)
              .map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
            const of = (selector) => { const at = document.querySelector(selector); let back = at;
              while (getComputedStyle(back).backgroundColor === 'rgba(0, 0, 0, 0)') back = back.parentElement;
              const a = luminance(getComputedStyle(at).color), b = luminance(getComputedStyle(back).backgroundColor);
              return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05); };
            return ['h1', '#description', '#sentence', '.card .label', '.hint', 'nav a', '#links td', '#links th button', '#foot'].map((each) => [each, of(each)]); })()"""
        for dark in (False, True):
            self.browser.open(self.run_of(64)[0], dark=dark)
            self.assertEqual(self.browser.value("document.documentElement.dataset.theme"), "dark" if dark else "light")
            for selector, found in self.browser.value(contrast):
                self.assertGreaterEqual(found, 4.5, (dark, selector))

    def test_paper_holds_the_answer_and_every_table(self):
        self.browser.open(self.run_of(64)[0], dark=True)
        paper = self.path("paper.pdf")
        self.browser.pdf(paper)
        self.browser.call("Emulation.setEmulatedMedia", media="print")
        self.browser.value("dispatchEvent(new Event('beforeprint'))")
        drawing = self.browser.value("document.querySelector('#topology svg, #topology canvas').getBoundingClientRect().width")
        self.browser.call("Emulation.setEmulatedMedia", media="", features=[{"name": "prefers-color-scheme", "value": "dark"}])
        self.browser.value("dispatchEvent(new Event('afterprint'))")
        self.assertLessEqual(drawing, 690)  # the width of the paper less its margins
        pages = len(re.findall(rb"/Type\s*/Page\b", paper.read_bytes()))
        self.assertTrue(2 <= pages <= 9, pages)
        self.assertEqual(self.browser.value("document.documentElement.dataset.theme"), "dark")
        self.assertEqual(self.browser.console, [])

    def test_every_chart_and_table_is_reached_and_named(self):
        self.browser.open(self.run_of(64)[0])
        nameless = self.browser.value("[...document.querySelectorAll('[role=img]')].filter((each) => !each.getAttribute('aria-label')).map((each) => each.id)")
        self.assertEqual(nameless, [])
        anchors = self.browser.value("[...document.querySelectorAll('nav a')].map((each) => !!document.querySelector(each.getAttribute('href')))")
        self.assertTrue(anchors and all(anchors))


if __name__ == "__main__":
    unittest.main()
