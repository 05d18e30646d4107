// Theme, colours that people with any colour vision tell apart, and the charts' common frame.
const schemes = {
  light: {
    ink: "#17202b", soft: "#5b6776", line: "#dde2e8", panel: "#ffffff", box: "#f3f5f8", idle: "#c3ccd6",
    ramp: ["#f0cf8e", "#f3a84f", "#e8702e", "#c0281f", "#6d0012"], heat: ["#ffffff", "#fdd49e", "#fc8d59", "#d7301f", "#7f0000"],
  },
  dark: {
    ink: "#e6ebf1", soft: "#93a1b1", line: "#2a333e", panel: "#171d25", box: "#1d2530", idle: "#465362",
    ramp: ["#6b4a8c", "#a13d86", "#dd513a", "#fca50a", "#fcffa4"], heat: ["#171d25", "#56106e", "#bb3754", "#f98c0a", "#fcffa4"],
  },
};
// Work is blue, waits are the warm and grey tones of Okabe and Ito's palette, moved apart in lightness.
const stateColours = {
  forward: "#8ec5ef", backward: "#3d8fd1", weight_gradient: "#2a6aa8", recompute: "#9fb7e8", optimizer: "#1d4470",
  gradient_sync: "#5f7fbf", parameter_sync: "#7896cf", transfer: "#a9c3d9", other_work: "#6fa3c7", other_processor: "#b5d3e3",
  pipeline_bubble: "#9aa3ad", tensor_parallel: "#e69f00", data_parallel: "#d55e00", pipeline_transfer: "#cc79a7",
  context_parallel: "#8c6bb1", expert_parallel: "#009e73", straggler: "#f0e442", host: "#7a5c3e", offload: "#56b4a9", other: "#c9ced4",
};
const paperWidth = 680;  // A4 less its margins, in CSS pixels
const busyColour = "#3d8fd1", slowedColour = "#8fbfe6";
const stored = () => { try { return localStorage.getItem("topsim-theme"); } catch { return null; } };
const themeName = () =>
  hash().get("theme") || stored() || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
let scheme = schemes.light;
const drawn = [];  // [{chart, draw}]: drawn again when the theme or the width changes

const applyTheme = (name) => {
  document.documentElement.dataset.theme = name;
  scheme = schemes[name] || schemes.light;
  redraw();
};
// `width`: of the paper, when it is printed; else each chart's own place.
const redraw = (width) => {
  for (const each of drawn) {
    const least = width && each.at ? parseInt(each.at.style.minWidth || 0) : 0;
    each.chart.resize({ width: width ? Math.max(width, least) : "auto" });
    each.draw();
  }
};
// `make` gets the width and returns an option; `height` follows what is drawn.
const draw = (id, height, make, renderer = "svg") => {
  const at = element(id);
  at.style.height = height + "px";
  const chart = echarts.init(at, null, { renderer });
  const each = { at, chart, draw: () => chart.setOption(Object.assign({
    animation: false, textStyle: { color: scheme.ink, fontFamily: "system-ui, 'DejaVu Sans', sans-serif" }, aria: { enabled: false },
  }, make(chart.getWidth())), { notMerge: true }) };
  each.draw();
  drawn.push(each);
  return chart;
};
// Columns for the names at the left of a chart: what is asked for, but never most of a narrow page.
const nameWidth = (width, wanted = 206) => Math.round(Math.min(wanted, width * 0.4));
// Names that have no room lose their middle: their ends tell them apart.
const nameLabel = (room, fontSize) => ({ color: scheme.ink, fontSize, formatter: (name) => middleCut(name, Math.floor((room - 8) / (0.56 * fontSize))) });
// What colours mean, in a line of its own that wraps: entries of [name, colour, meaning].
const legend = (id, entries) => {
  const list = document.createElement("ul");
  list.className = "legend";
  list.innerHTML = entries.map(([name, colour, meaning]) =>
    `<li${meaning ? ` title="${escapeText(meaning)}"` : ""}><i style="background:${colour}"></i>${escapeText(name)}</li>`).join("");
  element(id).before(list);
};
// A scale from nothing to `most`, beside a chart that colours by it.
const scaleOf = (id, ramp, most = 1) => {
  const bar = document.createElement("p");
  bar.className = "scale";
  bar.innerHTML = `0 %<i></i>${percent(most)}`;
  const paint = () => { bar.querySelector("i").style.background = `linear-gradient(90deg, ${ramp().join(", ")})`; };
  drawn.push({ chart: { resize() {} }, draw: paint });
  paint();
  element(id).before(bar);
};
const button = (into, text, pressed, act) => {
  const made = document.createElement("button");
  made.type = "button";
  made.textContent = text;
  if (pressed !== null) made.setAttribute("aria-pressed", pressed);
  made.onclick = () => act(made);
  element(into).append(made);
  return made;
};
const axisLine = () => ({ axisTick: { show: false }, axisLine: { lineStyle: { color: scheme.line } } });
// A round step of at most the `wanted` parts: 1, 2 or 5 times a power of ten, of two where that is the unit's base.
const roundStep = (span, wanted, base = 1) => {
  const rough = span / wanted / base, power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].find((step) => step * power >= rough * 0.999) * power * base;
};
// As many labels as have 72 of the `room` pixels each; `share` of it is in view.
const timeAxis = (seconds, room, share = 1) => {
  const step = seconds > 0 ? roundStep(seconds * share, Math.max(1, Math.min(8, Math.floor(room / 72)))) : 1;
  return {
    type: "value", min: 0, max: seconds || 1, interval: step, splitLine: { lineStyle: { color: scheme.line } },
    axisLabel: { formatter: (at) => instant(at, step, seconds), color: scheme.soft, hideOverlap: true, showMinLabel: share === 1, showMaxLabel: false },
  };
};
// A list to choose one of `names` from; `called`: as the reader knows them.
const choose = (into, label, names, called, chosen, act) => {
  const at = document.createElement("label"), list = document.createElement("select");
  at.textContent = label + " ";
  list.innerHTML = names.map((name) => `<option value="${escapeText(name)}"${name === chosen ? " selected" : ""}>${escapeText(called(name))}</option>`).join("");
  list.onchange = () => act(list.value);
  at.append(list);
  element(into).append(at);
};
const tooltip = (extraOptions = {}) => Object.assign({
  confine: true, backgroundColor: scheme.panel, borderColor: scheme.line, textStyle: { color: scheme.ink, fontSize: 13 },
}, extraOptions);
const colourAt = (ramp, share) => {
  const at = Math.max(0, Math.min(1, share)) * (ramp.length - 1), low = Math.min(Math.floor(at), ramp.length - 2);
  const parts = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
  const [a, b] = [parts(ramp[low]), parts(ramp[low + 1])];
  return `rgb(${a.map((value, i) => Math.round(value + (b[i] - value) * (at - low))).join(",")})`;
};
// Horizontal bars with the value behind each: rows of {name, value, text, colour, meaning}.
const bars = (id, rows) => draw(id, rows.length * (element(id).clientWidth < 500 ? 42 : 30) + 12, (width) => ({
  grid: { left: nameWidth(width), right: 126, top: 4, bottom: 4 },
  tooltip: tooltip({ formatter: (p) => `<b>${escapeText(p.name)}</b><br>${escapeText(rows[p.dataIndex].text)}` +
    (rows[p.dataIndex].meaning ? `<br>${escapeText(rows[p.dataIndex].meaning)}` : "") }),
  xAxis: { type: "value", show: false },
  yAxis: { type: "category", inverse: true, data: rows.map((row) => row.name), axisTick: { show: false }, axisLine: { show: false },
    axisLabel: { color: scheme.ink, fontSize: width < 500 ? 11.5 : 13, width: nameWidth(width) - 8, overflow: "break", lineHeight: 13 } },
  series: [{ type: "bar", barWidth: 14, itemStyle: { borderRadius: 3 },
    data: rows.map((row) => ({ value: row.value, itemStyle: { color: row.colour } })),
    label: { show: true, position: "right", color: scheme.ink, formatter: (p) => rows[p.dataIndex].text } }],
}));
// One bar in parts: entries of [name, value, colour, meaning].
const partsBar = (id, parts, whole, text) => {
  legend(id, parts.map(([name, , colour, meaning]) => [name, colour, meaning]));
  draw(id, 34, (width) => ({
    grid: { left: 2, right: 2, top: 4, bottom: 4 },
    tooltip: tooltip({ formatter: (p) => `<b>${escapeText(p.seriesName)}</b><br>${text(p.value)} of ${text(whole)}, ${percent(p.value / whole)}` }),
    xAxis: { type: "value", show: false, max: whole || 1 }, yAxis: { type: "category", show: false, data: [""] },
    series: parts.map(([name, value, colour]) => ({ name, type: "bar", stack: "all", barWidth: 26, data: [value], itemStyle: { color: colour },
      label: { show: value * width > 60 * whole, formatter: () => percent(value / whole), color: inkOn(colour) } })),
  }));
};
// Black or white, whichever is read better on a colour.
const inkOn = (colour) => {
  const [r, g, b] = [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16));
  return 0.299 * r + 0.587 * g + 0.114 * b > 125 ? "#17202b" : "#ffffff";
};
