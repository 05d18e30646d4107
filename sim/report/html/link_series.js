// The chosen link: its figures, and its use over the last measured step.
const seriesColours = ["#3d8fd1", "#d55e00", "#009e73", "#8c6bb1"];
const seriesOf = (id) => (extra.timeline ? extra.timeline.rows : []).find((row) => row.id === id);
// A line of the drawing stands for many links: the curve is that of the busiest.
const idOfSeries = (link) => (extra.timeline ? extra.timeline.rows : []).find((row) => row.link === link.series)?.id;
const showDetails = (title, rows) => {
  element("details").innerHTML = `<dl><dt>chosen</dt><dd><b>${escapeText(title)}</b></dd>` +
    rows.map(([key, value]) => `<dt>${escapeText(key)}</dt><dd>${value}</dd>`).join("") + "</dl>";
};
const figuresOf = (link) => `mean ${percent(link.utilization)}, highest ${percent(link.peak_utilization)}, ` +
  `carried ${bytes(link.bytes / steps)} a step, usable speed ${rate(link.capacity)}${link.count > 1 ? `; ${whole(link.count)} alike` : ""}`;
let seriesChart = null;
// `ids` as in result.json; `go`: bring it into view, for who chose it elsewhere on the page.
const showLinks = (title, ids, go, rows) => {
  showDetails(title, rows || ids.map((id) => [id, figuresOf(result.links.find((link) => link.id === id))]));
  const at = element("series"), found = ids.map(seriesOf).filter(Boolean);
  at.hidden = found.length === 0;
  if (found.length > 0) {
    const bins = found[0].bins.length;
    const option = (width) => ({
      grid: { left: 46, right: 14, top: 30, bottom: 26 },
      legend: { top: 0, left: 0, type: "scroll", textStyle: { color: scheme.ink }, icon: "roundRect", itemHeight: 10 },
      tooltip: tooltip({ trigger: "axis", valueFormatter: (value) => percent(value), axisPointer: { label: { formatter: (p) => duration(p.value) } } }),
      xAxis: timeAxis(extra.timeline.seconds, width - 60),
      yAxis: { type: "value", min: 0, max: 1, axisLabel: { formatter: (value) => `${value * 100} %`, color: scheme.soft }, splitLine: { lineStyle: { color: scheme.line } } },
      series: found.map((row, i) => ({ name: row.id, type: "line", step: "end", symbol: "none", lineStyle: { width: 1.5 }, color: seriesColours[i % seriesColours.length],
        areaStyle: { opacity: 0.18 }, data: [...row.bins, row.bins[bins - 1]].map((value, bin) => [bin / bins * extra.timeline.seconds, value / 1000]) })),
    });
    if (seriesChart) {
      seriesChart.make = option;
      seriesChart.each.draw();
    } else {
      seriesChart = { make: option };
      draw("series", 220, (width) => seriesChart.make(width));
      seriesChart.each = drawn[drawn.length - 1];
    }
  }
  if (go) element("details").scrollIntoView({ block: "center" });
};
