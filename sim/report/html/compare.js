// The page of a comparison: the verdict, where each step goes, how sure the difference is, what has to be bought.
// Figures as the program's table has them (compare_text.cpp).
const counted = (value) => (value < 1000 ? (Number.isInteger(value) ? String(value) : threeDigits(value)) : count(value));
const unitTexts = {
  s: duration, "B/s": rate, B: memoryText, W: (value) => `${threeDigits(value / 1000)} kW`,
  1: (share) => `${(100 * share).toFixed(Math.abs(share) >= 0.9995 ? 0 : 1)} %`,
  USD: (value) => `${counted(value)} USD`, count: counted,
};
const signed = (share) => {
  if (share === null) return "new";
  if (share >= 99) return `× ${threeDigits(1 + share)}`;
  const size = Math.abs(100 * share);
  return size < 0.005 ? "0 %" : `${share < 0 ? "−" : "+"}${size < 1 ? size.toFixed(2) : threeDigits(size)} %`;
};
const candidateColours = ["#3d8fd1", "#e69f00", "#009e73", "#cc79a7", "#8c6bb1", "#d55e00"];

// Of a change by a whole object, --with workload.plan={...}, a name tells what differs from the baseline's: what has another value, and
// what is gone, unless the framework's release gives it the value that it had.
const objectIn = (scenario, word) => [scenario, ...Object.values(scenario)].map((each) => each?.[word]).find((each) => each instanceof Object) || {};
const inForce = (one, word) => ({ ...objectIn(one.scenario, word), ...objectIn({ ...one.left_open }, word) });
// An entry of the catalogue without changes is its name.
const plainly = (value) => JSON.stringify(value instanceof Object && Object.keys(value).join() === "use" ? value.use : value);
const shortName = (name, i) => {
  const [, before, word, text] = name.match(/^(.* )?([\w[\]]+)=(\{.*\})$/s) || [];
  try {
    const given = JSON.parse(text), own = objectIn(extra.results[0].scenario, word), now = inForce(extra.results[i], word), same = (a, b) => plainly(a) === plainly(b);
    const differ = Object.entries(given).filter(([key, value]) => !same(value, own[key])).map(([key, value]) => `${key}=${typeof value === "string" ? value : JSON.stringify(value)}`);
    const gone = Object.keys(own).filter((key) => !(key in given) && !same(own[key], now[key]));
    return `${before || ""}${word} ${[...differ, ...(gone.length > 0 ? [`(${gone.join(", ")} left out)`] : [])].join(" ")}`.trim();
  } catch {
    return name;
  }
};
const shortenNames = () => {
  const short = result.names.map(shortName), named = (text) => result.names.reduce((all, name, i) => all.split(name).join(short[i]), text);
  if (new Set(short).size < short.length) return;
  Object.assign(result, { names: short, verdict: named(result.verdict), remarks: result.remarks.map(named) });
};
const stepRow = () => result.rows.find((row) => row.metric === "step.seconds");
const drawCandidates = () => {
  const { names, step_relative: relative } = result;
  element("headline").innerHTML = wholeNames(names.slice(0, -1).join(", ") + " or " + names[names.length - 1]);
  element("description").textContent = extra.results.map((each) => each.headline).filter((text, i, all) => all.indexOf(text) === i).join("  ·  ");
  const [verdict, ...more] = result.verdict.split("\n");
  element("sentence").innerHTML = wholeNames(verdict) + more.map((line) => `<small>${wholeNames(line)}</small>`).join("");
  const costs = result.rows.find((row) => row.metric === "cost.usd_per_million_tokens");
  element("answer").innerHTML = names.map((name, i) => {
    const one = extra.results[i], seconds = stepRow().values[i], parts = durationParts(seconds), change = stepRow().relative[i], median = relative[i].p50;
    const tone = i === 0 || Math.abs(median) < 0.01 ? "" : median > 0 ? "up" : "down";
    return `<div class="card"><div class="label">${wholeNames(name)}${i === 0 ? ", the baseline" : ""}</div>` +
      `<div class="value" data-value="${seconds}">${parts[0]}<small>${parts[1]} a step</small></div>` +
      `<div class="note">${one.memory.fits ? "" : `<b class="up">does not fit: ${memoryText(one.memory.per_accelerator_bytes)} of ${memoryText(one.memory.usable_bytes ?? one.memory.capacity_bytes)}</b> · `}${i === 0 ? "" : `<b class="${change > 0 === median > 0 ? tone : ""}">${signed(change)}</b>${result.samples > 1 ? ` this sample, ${signed(median)}${result.per_token ? " a token" : ""} in the median of ${result.samples}` : ""} · `}${percent(one.accelerators.busy_seconds / one.step.seconds)} busy` +
      `${costs ? ` · ${unitTexts.USD(costs.values[i])} a million tokens` : ""}</div></div>`;
  }).join("");
  foot(extra.results[0], `, ${plural(result.samples, "sample")} of each`);
};
const drawSplits = () => {
  const longest = Math.max(...extra.results.map((each) => each.step.seconds));
  const parts = extra.results.flatMap((each) => splitOf(each.accelerators)).map(([name, , colour, meaning]) => [name, colour, meaning]);
  legend("splits", [...new Map(parts.map((part) => [part[0], part])).values()]);
  stackedSplits("splits", result.names, extra.results.map((each) => each.accelerators), longest);
};
const drawSpread = () => {
  const rows = result.step_relative.slice(1);
  if (result.samples < 2) {
    element("spread").remove();
    element("sure-hint").textContent = "Each candidate was simulated once: nothing in these scenarios is uncertain or left to chance (hashed paths, random placement, a figure that sources disagree about), or results were compared as they are. Differences below 1 % are beneath what the models resolve.";
    return;
  }
  element("sure-hint").textContent = `${result.per_token ? "Time a token" : "Step time"} relative to ${result.names[0]}: the middle of ${result.samples} samples of hashed paths and uncertain figures, and the range from the 5th to the 95th percentile. The band is ± 1 %, which the models do not resolve; a range that includes zero is no difference.`;
  const reach = 1.15 * Math.max(0.015, ...rows.flatMap((row) => [Math.abs(row.p5), Math.abs(row.p95)]));
  draw("spread", rows.length * 40 + 46, (width) => ({
    grid: { left: nameWidth(width), right: 20, top: 6, bottom: 30 },
    tooltip: tooltip({ formatter: (p) => `${signed(rows[p.dataIndex].p50)}, from ${signed(rows[p.dataIndex].p5)} to ${signed(rows[p.dataIndex].p95)}` }),
    xAxis: { type: "value", min: Math.max(-1, -reach), max: reach, axisLabel: { formatter: signed, color: scheme.soft, hideOverlap: true }, splitLine: { lineStyle: { color: scheme.line } } },
    yAxis: { type: "category", inverse: true, data: result.names.slice(1), ...axisLine(), axisLabel: nameLabel(nameWidth(width), 12) },
    series: [{
      type: "custom", data: rows.map((row, i) => [row.p5, i, row.p50, row.p95]),
      markArea: { silent: true, itemStyle: { color: scheme.idle, opacity: 0.3 }, data: [[{ xAxis: -0.01 }, { xAxis: 0.01 }]] },
      renderItem: (params, api) => {
        const [low, y] = api.coord([api.value(0), api.value(1)]), [high] = api.coord([api.value(3), api.value(1)]), [middle] = api.coord([api.value(2), api.value(1)]);
        const colour = candidateColours[(api.value(1) + 1) % candidateColours.length];
        return { type: "group", children: [
          { type: "line", shape: { x1: low, y1: y, x2: high, y2: y }, style: { stroke: colour, lineWidth: 4, lineCap: "round" } },
          { type: "circle", shape: { cx: middle, cy: y, r: 6 }, style: { fill: colour, stroke: scheme.panel, lineWidth: 2 } }] };
      },
    }],
  }));
};
let everyRow = false;
const drawRows = () => {
  const shown = result.rows.filter((row) => everyRow || row.shown);
  const text = (row) => unitTexts[row.unit] || counted;
  const head = result.names.flatMap((name, i) => [`<th class="number">${wholeNames(name)}</th>`, i === 0 ? "" : '<th class="number">difference</th>']).join("");
  const body = shown.map((row) => `<tr><td title="${escapeText(row.metric)}">${escapeText(row.label)}</td>` + row.values.map((value, i) => {
    const relative = row.relative[i], same = i > 0 && relative !== null && Math.abs(relative) < 0.01;
    return `<td class="number" data-value="${value}">${text(row)(value)}</td>` + (i === 0 ? "" : `<td class="number${same ? " same" : ""}">${signed(relative)}</td>`);
  }).join("") + "</tr>").join("");
  element("rows").innerHTML = `<div class="scroll" tabindex="0"><table class="wrapped"><thead><tr><th>figure</th>${head}</tr></thead><tbody>${body}</tbody></table></div>`;
};
const money = (value) => (value >= 1e4 ? scaled(value, metric, "").join(" ").trim() : whole(Math.round(value)));
const rangeText = (range, times = 1) => (range.low === range.high ? money(range.usual * times)
  : `${money(range.usual * times)} <span class="range">(${money(range.low * times)} to ${money(range.high * times)})</span>`);
const kilowatts = (value) => scaled(value, metric, "W").join(" ");
// Rows add up to everything: what comes with the server has no price of its own.
const billTable = (bill) => {
  const row = (item) => `<tr><td>${escapeText(item.name || item.id)}</td><td class="number">${whole(item.count)}</td>` + (item.included_in_server
    ? '<td class="number">in the server</td><td class="number"></td><td></td></tr>'
    : `<td class="number">${item.usd_each ? rangeText(item.usd_each) : "not known"}</td><td class="number">${item.usd_each ? rangeText(item.usd_each, item.count) : ""}</td>` +
      `<td class="source"><div>${escapeText(item.price_source)}</div></td></tr>`);
  const sum = (what, figure, from) => `<tr><td colspan="3"><b>${what}</b></td><td class="number"><b>${figure}</b></td><td class="source">${from}</td></tr>`;
  const pue = bill.pue.low === bill.pue.high ? digits(bill.pue.usual) : `${digits(bill.pue.low)} to ${digits(bill.pue.high)}`;
  return '<div class="scroll" tabindex="0"><table class="wrapped"><thead><tr><th>part</th><th class="number">count</th><th class="number">USD each</th><th class="number">USD together</th><th>from</th></tr></thead><tbody>' +
    bill.items.map(row).join("") + sum("fabric: switches, cables, NICs beside servers", rangeText(bill.fabric_usd), "") +
    sum("everything", rangeText(bill.capital_usd), "") +
    sum("power at full load", kilowatts(bill.watts), `${kilowatts(bill.watts * bill.pue.usual)} with cooling (PUE ${pue})`) + "</tbody></table></div>";
};
const drawBills = () => {
  if (!extra.bills.some(Boolean)) return element("costs").remove();
  element("bills").innerHTML = extra.bills.map((bill, i) => (bill ? `<h3>${escapeText(result.names[i])}</h3>${billTable(bill)}` : "")).join("");
};
const drawRemarks = () => {
  if (result.remarks.length === 0) return element("remarks-section").remove();
  element("remarks").innerHTML = result.remarks.map((remark) => `<li>${escapeText(remark)}</li>`).join("");
};
// Without costs no candidate has a bill.
const compareCommand = () => ["topsim compare", ...result.names.map((name) => `${fileName(name)}.json`), `--seeds ${result.samples}`,
  ...(extra.results.every((each) => each.memory.fits) ? [] : ["--allow-oom"]), ...(extra.bills.some(Boolean) ? [] : ["--no-cost"]), "--html compare.html"].join(" ");
pages.compare = () => {
  shortenNames();
  drawCandidates();
  drawSplits();
  drawSpread();
  drawRows();
  button("rows-tools", "also what does not differ", false, (chosen) => {
    everyRow = !everyRow;
    chosen.setAttribute("aria-pressed", everyRow);
    drawRows();
  });
  drawBills();
  drawRemarks();
  element("command").textContent = compareCommand();
  extra.results.forEach((each, i) => button("save", `Save ${result.names[i]}.json`, null, () => saveFile(`${fileName(result.names[i])}.json`, JSON.stringify(each.scenario, null, 2) + "\n")));
  drawWords();
};
