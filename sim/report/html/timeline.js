// The last measured step, one row a class of ranks; and the links over the same time.
const missing = (section, text) => {
  const at = element(section);
  for (const chart of at.querySelectorAll(".chart, .tools")) chart.remove();
  at.querySelector(".hint").textContent = text;
};
const trackName = (track) => `${track.program} · rank ${whole(track.rank)}${track.count > 1 ? ` × ${whole(track.count)}` : ""}`;

// Cells shorter than `grain` become cells of about that length that hold shares; zooming in takes them apart.
const coarser = (cells, grain) => {
  const merged = [], held = new Map();
  let begin = 0, end = 0;
  const flush = () => {
    const sum = [...held.values()].reduce((a, b) => a + b, 0);
    let low = 0;
    for (const [state, seconds] of [...held].sort((a, b) => a[0] - b[0])) {
      merged.push({ begin, length: end - begin, state, low, share: seconds / sum });
      low += seconds / sum;
    }
    held.clear();
  };
  for (const cell of cells) {
    if (cell.low === 0 && (cell.length >= grain || end - begin >= grain || held.size === 0)) {
      flush();
      begin = cell.begin;
    }
    held.set(cell.state, (held.get(cell.state) || 0) + cell.length * cell.share);
    end = Math.max(end, cell.begin + cell.length);
    if (cell.length >= grain && cell.share === 1) flush();
  }
  flush();
  return merged;
};

const drawTimeline = () => {
  const data = extra.timeline;
  if (!data || data.tracks.length === 0) return missing("time", "This run kept no timeline: topsim run SCENARIO.json --html FILE does.");
  const tracks = data.tracks.map(cellsOf);
  const used = [...new Set(tracks.flat().map((cell) => cell.state))].sort((a, b) => a - b);
  let cells = new Map(), share = 1;  // by state, at the zoom's grain; the share of the step in view
  const refine = () => {
    const all = tracks.flatMap((track, row) => coarser(track, share * data.seconds / 450).map((cell) => ({ ...cell, row })));
    cells = new Map(used.map((state) => [state, all.filter((cell) => cell.state === state)]));
  };
  const dataOf = (state) => cells.get(state).map((cell) => ({ value: [cell.row, cell.begin, cell.begin + cell.length], cell }));
  refine();
  const colourOf = (state) => stateColours[state < data.busy_states && data.states[state] === "other" ? "other_work" : data.states[state]] || "#888";
  const nameOf = (state) => (state < data.busy_states ? data.states[state].replace(/_/g, " ") : stateName(data.states[state]));
  element("timeline-hint").textContent =
    `The last measured step (${duration(data.seconds)}). Blue is work, other colours are reasons to wait. ` +
    (data.tracks.some((track) => track.merged) ? "Where events are shorter than a cell, the cell is split by their shares. " : "") +
    (data.tracks.length < data.lanes ? `${data.tracks.length} of ${whole(data.lanes)} classes of ranks are shown, spread evenly. ` : "") +
    "Drag to move, Ctrl and scroll to zoom; on the keyboard: arrows, + and −, 0 for all.";
  const step = data.tracks.length <= 4 ? 52 : 32, band = step - 10;
  const chart = draw("timeline", data.tracks.length * step + 120, () => ({
    grid: { left: 210, right: 14, top: 44, bottom: 62 },
    legend: { top: 0, left: 0, type: "scroll", icon: "roundRect", itemWidth: 12, itemHeight: 12, textStyle: { color: scheme.ink },
      selectedMode: true, pageTextStyle: { color: scheme.soft }, data: used.map(nameOf) },
    tooltip: tooltip({ formatter: (p) => {
      const cell = p.data.cell;
      return `<b>${escapeText(nameOf(cell.state))}</b>${cell.share < 1 ? `, ${percent(cell.share)} of these` : ""}<br>` +
        `${duration(cell.length)} from ${duration(cell.begin)}<br>${escapeText(trackName(data.tracks[cell.row]))} (${escapeText(data.tracks[cell.row].device)})`;
    } }),
    xAxis: { type: "value", min: 0, max: data.seconds, axisLabel: { formatter: duration, color: scheme.soft, hideOverlap: true, showMaxLabel: false }, splitLine: { lineStyle: { color: scheme.line } } },
    yAxis: { type: "category", inverse: true, data: data.tracks.map(trackName), axisTick: { show: false },
      axisLine: { lineStyle: { color: scheme.line } }, axisLabel: { color: scheme.ink, fontSize: 11.5, width: 202, overflow: "truncate" } },
    dataZoom: [{ type: "inside", filterMode: "weakFilter", zoomOnMouseWheel: "ctrl", minSpan: 0.01 },
      { type: "slider", filterMode: "weakFilter", bottom: 8, height: 20, labelFormatter: duration, borderColor: scheme.line, textStyle: { color: scheme.soft }, showDataShadow: false }],
    series: used.map((state) => ({
      name: nameOf(state), type: "custom", itemStyle: { color: colourOf(state) }, encode: { x: [1, 2], y: 0 }, progressive: 0,
      data: dataOf(state),
      renderItem: (params, api) => {
        const cell = cells.get(state)[params.dataIndex], a = api.coord([cell.begin, cell.row]), b = api.coord([cell.begin + cell.length, cell.row]);
        const left = Math.round(Math.max(a[0], params.coordSys.x)), right = Math.round(Math.min(b[0], params.coordSys.x + params.coordSys.width));
        return right <= left ? null : { type: "rect", style: { fill: colourOf(state) },
          shape: { x: left, y: a[1] - band / 2 + band * cell.low, width: right - left, height: band * cell.share } };
      },
    })),
  }), "canvas");
  chart.on("datazoom", () => {
    const { start, end } = chart.getOption().dataZoom[0];
    if (Math.abs((end - start) / 100 / share - 1) < 0.2) return;
    share = (end - start) / 100;
    refine();
    chart.setOption({ series: used.map((state) => ({ data: dataOf(state) })) });
  });
  const move = (shift, zoom) => {
    const { start, end } = chart.getOption().dataZoom[0], span = end - start, middle = (start + end) / 2 + shift * span;
    const half = Math.min(50, span * zoom / 2), from = Math.max(0, Math.min(100 - 2 * half, middle - half));
    chart.dispatchAction({ type: "dataZoom", start: from, end: from + 2 * half });
  };
  const keys = { ArrowLeft: [-0.2, 1], ArrowRight: [0.2, 1], "+": [0, 0.5], "=": [0, 0.5], "-": [0, 2], 0: [0, 1e6] };
  element("timeline").addEventListener("keydown", (event) => {
    if (!keys[event.key] || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    move(...keys[event.key]);
  });
};

const drawHeat = () => {
  const rows = extra.timeline ? extra.timeline.rows : [];
  if (rows.length === 0) {
    element("heat").remove();
    element("heat-hint").textContent = result.links.length > 0
      ? "Means over the measured steps; this run kept no rates over time." : "No link carried a byte.";
    return;
  }
  const bins = rows[0].bins.length, at = (bin) => duration(extra.timeline.seconds * bin / bins);
  element("heat-hint").textContent =
    `Use of the busiest ${rows.length < extra.timeline.links ? `${rows.length} of ${whole(extra.timeline.links)} ` : ""}classes of links during the last measured step; each cell is the mean over ${duration(extra.timeline.seconds / bins)}.`;
  draw("heat", rows.length * 20 + 76, () => ({
    grid: { left: 268, right: 14, top: 30, bottom: 26 },
    tooltip: tooltip({ formatter: (p) => `<b>${escapeText(rows[p.value[1]].id)}</b>${rows[p.value[1]].count > 1 ? ` and ${whole(rows[p.value[1]].count - 1)} alike` : ""}<br>` +
      `${escapeText(rows[p.value[1]].type)}<br>${percent(p.value[2])} at ${at(p.value[0])}` }),
    visualMap: { type: "continuous", min: 0, max: 1, orient: "horizontal", right: 4, top: 0, itemWidth: 11, itemHeight: 130, calculable: false,
      text: ["100 %", "0 %"], textStyle: { color: scheme.soft }, inRange: { color: scheme.heat }, hoverLink: false },
    xAxis: { type: "category", data: Array.from({ length: bins }, (_, bin) => at(bin)), axisTick: { show: false }, axisLabel: { color: scheme.soft, hideOverlap: true }, axisLine: { lineStyle: { color: scheme.line } } },
    yAxis: { type: "category", inverse: true, data: rows.map((row) => `${row.id}${row.count > 1 ? ` × ${whole(row.count)}` : ""}`), axisTick: { show: false },
      axisLine: { lineStyle: { color: scheme.line } }, axisLabel: { color: scheme.ink, fontSize: 11, width: 258, overflow: "truncate", interval: 0 } },
    series: [{ type: "heatmap", progressive: 0, data: rows.flatMap((row, y) => row.bins.map((value, x) => [x, y, value / 1000])) }],
  }), "canvas");
};
