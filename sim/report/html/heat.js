// Use of links over the last measured step, one row a class of links.
const drawHeat = () => {
  const rows = extra.timeline ? extra.timeline.rows.slice(0, extra.timeline.shown) : [];
  if (rows.length === 0) {
    element("heat").remove();
    element("heat-hint").textContent = `Means over ${measured ? "the measured steps" : "what was simulated"}; this run kept no rates over time.`;
    return;
  }
  const bins = rows[0].bins.length, at = (bin) => duration(extra.timeline.seconds * bin / bins);
  element("heat-hint").textContent =
    `Use of the busiest ${rows.length < extra.timeline.links ? `${rows.length} of ${whole(extra.timeline.links)} ` : ""}classes of links during the last measured step; each cell is the mean over ${duration(extra.timeline.seconds / bins)}. Choose a row for its curve.`;
  // Links that are hardly used would leave a white field on a scale to 100 %.
  const most = Math.min(1, Math.max(0.01, ...rows.flatMap((row) => row.bins.map((value) => value / 1000))));
  scaleOf("heat", () => scheme.heat, most);
  const nameOf = (row) => `${row.id}${row.count > 1 ? ` × ${whole(row.count)}` : ""}`;
  const chart = draw("heat", rows.length * 20 + 40, (width) => ({
    grid: { left: nameWidth(width, 276), right: 14, top: 4, bottom: 26 },
    tooltip: tooltip({ formatter: (p) => `<b>${escapeText(rows[p.value[1]].id)}</b>${rows[p.value[1]].count > 1 ? ` and ${whole(rows[p.value[1]].count - 1)} alike` : ""}<br>` +
      `${escapeText(rows[p.value[1]].type)}<br>${percent(p.value[2])} at ${at(p.value[0])}` }),
    xAxis: [{ type: "category", data: Array.from({ length: bins }, (_, bin) => at(bin)), show: false },
      { ...timeAxis(extra.timeline.seconds, width - nameWidth(width, 276) - 14), position: "bottom", splitLine: { show: false } }],
    yAxis: { type: "category", inverse: true, data: rows.map(nameOf), ...axisLine(),
      axisLabel: { ...nameLabel(nameWidth(width, 276), 11), interval: 0 } },
    // Rectangles of our own: the library's heat map draws a few thousand cells a frame, and is not all there when the page says so.
    series: [{ type: "custom", progressive: 0, data: rows.flatMap((row, y) => row.bins.map((value, x) => [x, y, value / 1000])),
      renderItem: (params, api) => {
        const [x, y] = api.coord([api.value(0), api.value(1)]), [w, h] = api.size([1, 1]);
        return { type: "rect", shape: { x: x - w / 2, y: y - h / 2, width: w + 0.5, height: h + 0.5 }, style: { fill: colourAt(scheme.heat, api.value(2) / most) } };
      } }],
  }), "canvas");
  chart.on("click", (p) => showLinks(rows[p.value[1]].type, [rows[p.value[1]].id], true));
};
