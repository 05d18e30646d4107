// The last measured step, one row a class of ranks; and the links over the same time.
const missing = (section, text) => {
  const at = element(section);
  for (const chart of at.querySelectorAll(".chart, .tools, .details")) chart.remove();
  at.querySelector(".hint").textContent = text;
};
const trackName = (track) => `${track.program === `rank ${track.rank}` ? "" : `${track.program} · `}rank ${whole(track.rank)}${track.count > 1 ? ` × ${whole(track.count)}` : ""}`;

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
  let cells = new Map();  // by state, at the zoom's grain
  let view = { start: 0, end: 100 }, share = 1;  // what is in view, per cent, and its share of the step when cells were made
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
    (used.some((state) => data.states[state] === "other_processor") ? "Where the first processor of a rank waits while another of its processors works, that is drawn. " : "") +
    "Point for what happened when; drag to move, Ctrl and scroll to zoom; on the keyboard: arrows, + and −, 0 for all.";
  legend("timeline", used.map((state) => [nameOf(state), colourOf(state), state < data.busy_states ? "work" : reasonMeanings[data.states[state]]]));
  const step = data.tracks.length <= 4 ? 52 : 32, band = step - 10;
  const axis = (width) => timeAxis(data.seconds, width - nameWidth(width, 210) - 14, share);
  const chart = draw("timeline", data.tracks.length * step + 84, (width) => ({
    grid: { left: nameWidth(width, 210), right: 14, top: 8, bottom: 62 },
    tooltip: tooltip({ formatter: (p) => {
      const cell = p.data.cell;
      return `<b>${escapeText(nameOf(cell.state))}</b>${cell.share < 1 ? `, ${percent(cell.share)} of these` : ""}<br>` +
        `${duration(cell.length)} from ${duration(cell.begin)}<br>${escapeText(trackName(data.tracks[cell.row]))} (${escapeText(data.tracks[cell.row].device)})`;
    } }),
    xAxis: axis(width),
    yAxis: { type: "category", inverse: true, data: data.tracks.map(trackName), ...axisLine(),
      axisLabel: { color: scheme.ink, fontSize: 11.5, width: nameWidth(width, 210) - 8, overflow: "truncate" } },
    dataZoom: [{ ...view, type: "inside", filterMode: "weakFilter", zoomOnMouseWheel: "ctrl", minSpan: 0.01 },
      { ...view, type: "slider", filterMode: "weakFilter", bottom: 8, height: 20, labelFormatter: duration, borderColor: scheme.line, textStyle: { color: scheme.soft }, showDataShadow: false }],
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
    view = { start, end };
    if (Math.abs((end - start) / 100 / share - 1) < 0.2) return;
    share = (end - start) / 100;
    refine();
    chart.setOption({ xAxis: axis(chart.getWidth()), series: used.map((state) => ({ data: dataOf(state) })) });
  });
  const move = (shift, zoom) => {
    const { start, end } = chart.getOption().dataZoom[0], span = end - start, middle = (start + end) / 2 + shift * span;
    const half = Math.min(50, span * zoom / 2), from = Math.max(0, Math.min(100 - 2 * half, middle - half));
    chart.dispatchAction({ type: "dataZoom", start: from, end: from + 2 * half });
  };
  button("timeline-tools", "zoom in", null, () => move(0, 0.5));
  button("timeline-tools", "zoom out", null, () => move(0, 2));
  button("timeline-tools", "earlier", null, () => move(-0.4, 1));
  button("timeline-tools", "later", null, () => move(0.4, 1));
  button("timeline-tools", "whole step", null, () => move(0, 1e6));
  const keys = { ArrowLeft: [-0.2, 1], ArrowRight: [0.2, 1], "+": [0, 0.5], "=": [0, 0.5], "-": [0, 2], 0: [0, 1e6] };
  element("timeline").addEventListener("keydown", (event) => {
    if (!keys[event.key] || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    move(...keys[event.key]);
  });
};
