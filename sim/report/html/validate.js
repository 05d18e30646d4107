// The page of validate: predicted against published, both logarithmic; who is off, and by how much.
const familyColours = ["#3d8fd1", "#e69f00", "#009e73", "#cc79a7", "#8c6bb1", "#d55e00", "#7a5c3e", "#56b4a9", "#5f7fbf", "#b2912f"];
let familyShown = null;
const fileOf = (family) => family.split("/")[0];

// One axis has one unit: times, or what there is in place of them.
const drawCloud = (all, families) => {
  const cases = all.some(isTime) ? all.filter(isTime) : all.filter((one) => one.figure === all[0].figure);
  const shown = () => cases.filter((each) => familyShown === null || familyShown === fileOf(each.family));
  const ends = () => {  // of both axes, a little more than what is shown
    const figures = shown().flatMap((each) => [each.published, each.predicted]);
    return [Math.min(...figures) / 1.4, Math.max(...figures) * 1.4];
  };
  const axis = (name, [low, high]) => ({ type: "log", min: low, max: high, name, nameLocation: "middle", nameGap: 30, nameTextStyle: { color: scheme.ink },
    axisLabel: { formatter: (value) => caseFigure(cases[0], value), color: scheme.soft, hideOverlap: true,
      showMinLabel: high < 100 * low, showMaxLabel: high < 100 * low }, splitLine: { lineStyle: { color: scheme.line } } });  // beside decades they overlap
  const lines = ([low, high]) => [[1, 1.5, 0.9], [1.1, 1, 0.5], [1 / 1.1, 1, 0.5], [1.25, 1, 0.3], [0.75, 1, 0.3]].map(([factor, width, opacity]) => ({
    type: "line", silent: true, symbol: "none", z: 1, data: [[low, low * factor], [high, high * factor]], clip: true,
    lineStyle: { color: scheme.soft, width, opacity, type: factor === 1 ? "solid" : "dashed" } }));
  const chart = draw("scatter", 520, () => ({
    grid: { left: 70, right: 16, top: 10, bottom: 48 },
    tooltip: tooltip({ formatter: (p) => caseText(p.data.one) }),
    xAxis: axis("published", ends()), yAxis: { ...axis("predicted", ends()), nameGap: 54 },
    series: [...lines(ends()), ...families.map((family) => ({
      name: family, type: "scatter", symbolSize: 8, z: 2, color: colourOfFamily(families, family), itemStyle: { opacity: 0.75 },
      data: shown().filter((each) => each.family === family).map((one) => ({ value: [one.published, one.predicted], one })) }))],
  }), "canvas");
  chart.on("click", (p) => p.data.one && showCase(p.data.one));
  choose("families-tools", "publication", ["", ...new Set(families.map(fileOf))], (file) => file || "all of them", "", (file) => {
    familyShown = file || null;
    redraw();
  });
};
const colourOfFamily = (families, family) => familyColours[[...new Set(families.map(fileOf))].indexOf(fileOf(family)) % familyColours.length];
// Times are seconds, memory bytes, shares of one; ratios are of two rows' costs.
const caseFigure = (one, value) => (({ memory: memoryText, share: percent, ratio: (each) => `× ${each.toPrecision(3)}` })[one.figure] || duration)(value);
const isTime = (one) => one.figure === "step" || one.figure === "collective";
const isMeasured = (one) => isTime(one) || one.figure === "memory";  // errors of shares are differences, and a ratio is of two such figures
const signedError = (error) => `${error < 0 ? "−" : "+"}${percent(Math.abs(error))}`;
const caseText = (one) => `<b>${escapeText(one.name)}</b><br>published ${caseFigure(one, one.published)}, predicted ${caseFigure(one, one.predicted)}: ${signedError(one.error)}<br>${escapeText(one.family)}`;
const showCase = (one) => {
  element("details").innerHTML = `<dl><dt>chosen</dt><dd><b>${escapeText(one.name)}</b></dd><dt>published</dt><dd>${caseFigure(one, one.published)}</dd>` +
    `<dt>predicted</dt><dd>${caseFigure(one, one.predicted)}, ${signedError(one.error)}</dd><dt>family</dt><dd>${escapeText(one.family)}</dd>` +
    `<dt>source</dt><dd>${escapeText(one.source || "")}</dd><dt>run it</dt><dd><code>topsim validate ${escapeText(one.name)} --each</code></dd></dl>`;
};
// "38 steps, 12 collectives": what was measured.
const kindNames = { step: "step", collective: "collective", memory: "memory figure", share: "share", ratio: "comparison" };
const kindsOf = (cases) => Object.keys(kindNames).map((kind) => [kindNames[kind], cases.filter((one) => one.figure === kind).length])
  .filter(([, number]) => number > 0).map(([name, number]) => plural(number, name)).join(", ");
const drawErrors = (cases) => {
  const edges = [-1e9, -0.5, -0.4, -0.3, -0.25, -0.2, -0.15, -0.1, -0.05, 0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 1e9];
  const name = (i) => (i === 0 ? "below −50 %" : i === edges.length - 2 ? "above +50 %" : `${Math.round(edges[i] * 100)} to ${Math.round(edges[i + 1] * 100)} %`).replace(/-/g, "−");
  const bins = edges.slice(1).map((_, i) => cases.filter((each) => each.error >= edges[i] && each.error < edges[i + 1]).length);
  const tallest = bins.indexOf(Math.max(...bins));
  draw("errors", 230, (width) => ({
    grid: { left: 58, right: 14, top: 22, bottom: 44 },
    tooltip: tooltip({ formatter: (p) => `${plural(p.value, "case")}<br>predicted ${p.name} off the published figure` }),
    xAxis: { type: "category", data: bins.map((_, i) => name(i)), ...axisLine(), axisLabel: { color: scheme.soft,
      interval: (i) => (i - tallest) % Math.max(1, Math.ceil(84 * bins.length / (width - 72))) === 0 } },  // as many as have room, the tallest bar's among them
    yAxis: { type: "value", minInterval: 1, name: "cases", nameLocation: "middle", nameGap: 32, nameTextStyle: { color: scheme.soft }, axisLabel: { color: scheme.soft }, splitLine: { lineStyle: { color: scheme.line } } },
    series: [{ type: "bar", barCategoryGap: "8%", label: { show: true, position: "top", color: scheme.ink, formatter: (p) => (p.value > 0 ? whole(p.value) : "") }, data: bins.map((value, i) => ({ value, itemStyle: { color: Math.abs(i - 8.5) < 3 ? busyColour : "#e69f00" } })) }],
  }));
};
pages.validate = () => {
  const cases = result.cases.filter((each) => each.predicted !== null && each.published > 0), families = Object.keys(result.families);
  const relative = cases.some(isMeasured) ? cases.filter(isMeasured) : cases;
  const failed = result.cases.length - cases.length, size = relative.map((each) => Math.abs(each.error)).sort((a, b) => a - b);
  // As the table's, which the program computes: between two cases, the mean of both.
  const at = (share) => {
    const place = share * size.length, next = Math.min(size.length - 1, Math.round(place));
    return Math.abs(place - Math.round(place)) < 1e-9 && place >= 1 ? (size[Math.round(place) - 1] + size[next]) / 2 : size[Math.min(size.length - 1, Math.floor(place))];
  };
  element("headline").textContent = "Predicted and published";
  element("description").textContent = "topsim simulated what others measured and printed; no case's own figure is an input of its prediction." +
    (result.complete ? "" : " Interrupted: this is what was done.");
  const reasons = [...new Set(result.cases.map((each) => each.problem).filter(Boolean))];
  if (cases.length === 0) {
    element("main").innerHTML = `<p>No case could be simulated.</p><ul>${reasons.map((each) => `<li>${escapeText(each)}</li>`).join("")}</ul>`;
    return;
  }
  const within = (share) => size.filter((each) => each <= share).length / size.length;
  element("sentence").innerHTML = unbroken(`Half of ${plural(relative.length, "published measurement")} are predicted within ${percent(at(0.5))}; ${percent(within(0.1))} of them within 10 %, ` +
    `${percent(within(0.25))} within 25 %. The furthest is off by ${percent(size[size.length - 1])}.`);
  if (failed) element("sentence").innerHTML += `<small>${plural(failed, "case")} not simulated: ${reasons.map(escapeText).join("; ")}</small>`;
  const card = (label, value, note) => `<div class="card"><div class="label">${label}</div><div class="value">${value}</div><div class="note">${note}</div></div>`;
  element("answer").innerHTML = card("Median error", percent(at(0.5)), "half are nearer") + card("90th percentile", percent(at(0.9)), "nine of ten are nearer") +
    card("Bias", signedError(relative.reduce((sum, each) => sum + each.error, 0) / relative.length), "mean error: + is too slow") +
    card("Cases", whole(cases.length), `${kindsOf(cases)}; ${failed ? `${plural(failed, "case")} not simulated` : "all simulated"}`) +
    card("Families", whole(families.length), !result.complete ? "bars are not judged" : families.every((family) => Object.keys(result.families[family].bar).length === 0) ? "no bar is set" : `${whole(families.filter((family) => result.families[family].passed).length)} within their bar`);
  drawCloud(cases, families);
  drawErrors(relative);
  if (relative.length < cases.length) element("errors-hint").textContent = `Of ${kindsOf(relative)}; errors of shares and of comparisons are of another kind, and not counted here.`;
  const barText = (bar) => Object.entries(bar).map(([key, value]) => `${key} ${key === "tau" ? value.toFixed(2) : percent(value)}`).join(", ");
  table("families", "Families", [
    ["family", (row) => row.name], ["cases", (row) => row.n, whole], ["mean error", (row) => row.mean_abs_error, percent], ["median", (row) => row.median_abs_error, percent],
    ["90th percentile", (row) => row.percentile_90_abs_error, percent], ["furthest", (row) => row.max_abs_error, percent], ["bias", (row) => row.bias, signedError],
    ["bar", (row) => barText(row.bar)], ["goal", (row) => barText(row.goal)], ["holds", (row) => (row.passed === null ? "" : row.passed ? "yes" : "no")],
  ], families.filter((name) => result.families[name].mean_abs_error !== null).map((name) => ({ name, ...result.families[name] })), { by: 2 });
  table("cases", "Cases", [
    ["case", (row) => row.name], ["family", (row) => row.family], ["published", (row) => row.published, (value, row) => caseFigure(row, value)],
    ["predicted", (row) => row.predicted, (value, row) => caseFigure(row, value)], ["error", (row) => row.error, signedError], ["off by", (row) => Math.abs(row.error), percent], ["source", (row) => row.source || ""],
  ], cases, { by: 5, act: (row) => { showCase(row); element("details").scrollIntoView({ block: "center" }); } });
  element("foot").textContent = "topsim validate. Charts: Apache ECharts.";
};
