// The page of a comparison: the verdict, where each step goes, how sure the difference is, what has to be bought.
const unitTexts = {
  s: duration, "B/s": rate, B: bytes, W: (value) => scaled(value, metric, "W").join(" "), 1: percent,
  USD: (value) => `${value >= 1000 ? whole(Math.round(value)) : digits(value)} USD`, count: whole,
};
const signed = (share) => {
  if (share === null) return "new";
  if (share >= 9) return `× ${countParts(1 + share).join(" ").trim()}`;
  return Math.abs(share) < 1e-4 ? "0 %" : `${share < 0 ? "−" : "+"}${percent(Math.abs(share))}`;
};
const metricNames = {
  "step.seconds": "step time", "accelerators.busy_seconds": "busy", "throughput.tokens_per_second": "tokens per second", "throughput.mfu": "model FLOPs utilisation",
  "memory.per_accelerator_bytes": "memory of the fullest", "cost.fabric_usd": "price of the fabric", "cost.capital_usd": "price of everything",
  "cost.usd_per_million_tokens": "cost of a million tokens", "cost.usd_per_step": "cost of a step", "cost.usd_per_run": "cost of the training run", "cost.watts": "power at full load",
};
const metricName = (metric) => {
  const reason = metric.match(/^accelerators\.idle_seconds\.(.*)$/), call = metric.match(/^collectives\.(\w+)\.(\w+)\.(\d+)\.(\w+)$/);
  if (reason) return `idle: ${stateName(reason[1])}`;
  if (call) return `${call[1]} ${call[2]} of ${memoryText(+call[3])}: ${call[4].replace(/_/g, " ")}`;
  return metricNames[metric] || metric.replace(/\./g, " · ").replace(/_/g, " ");
};
const candidateColours = ["#3d8fd1", "#e69f00", "#009e73", "#cc79a7", "#8c6bb1", "#d55e00"];

const stepRow = () => result.rows.find((row) => row.metric === "step.seconds");
const drawCandidates = () => {
  const { names, step_relative: relative } = result;
  element("headline").textContent = names.slice(0, -1).join(", ") + " or " + names[names.length - 1];
  element("description").textContent = extra.results.map((each) => each.headline).filter((text, i, all) => all.indexOf(text) === i).join("  ·  ");
  const [verdict, ...more] = result.verdict.split("\n");
  element("sentence").innerHTML = escapeText(verdict) + more.map((line) => `<small>${escapeText(line)}</small>`).join("");
  const costs = result.rows.find((row) => row.metric === "cost.usd_per_million_tokens");
  element("answer").innerHTML = names.map((name, i) => {
    const one = extra.results[i], seconds = stepRow().values[i], parts = durationParts(seconds), change = relative[i].p50;
    const tone = i === 0 || Math.abs(change) < 0.01 ? "" : change > 0 ? "up" : "down";
    return `<div class="card"><div class="label">${escapeText(name)}${i === 0 ? ", the baseline" : ""}</div>` +
      `<div class="value" data-value="${seconds}">${parts[0]}<small>${parts[1]} a step</small></div>` +
      `<div class="note">${i === 0 ? "" : `<b class="${tone}">${signed(change)}</b>${result.samples > 1 ? ` (median of ${result.samples})` : ""} · `}${percent(one.accelerators.busy_seconds / one.step.seconds)} busy` +
      `${costs ? ` · ${unitTexts.USD(costs.values[i])} a million tokens` : ""}</div></div>`;
  }).join("");
  foot(extra.results[0], `, ${plural(result.samples, "sample")} of each`);
};
const drawSplits = () => {
  const longest = Math.max(...extra.results.map((each) => each.step.seconds));
  const keys = [...new Set(extra.results.flatMap((each) => idleRows(each.accelerators.idle_seconds).map(([key]) => key)))];
  legend("splits", [["busy", busyColour], ...keys.map((key) => [stateName(key), stateColours[key], reasonMeanings[key]])]);
  stackedSplits("splits", result.names, extra.results.map((each) => each.accelerators), longest);
};
const drawSpread = () => {
  const rows = result.step_relative.slice(1);
  if (result.samples < 2) {
    element("spread").remove();
    element("sure-hint").textContent = "Each candidate was simulated once: nothing in these scenarios is uncertain or left to chance (hashed paths, random placement, a figure that sources disagree about), or results were compared as they are. Differences below 1 % are beneath what the models resolve.";
    return;
  }
  element("sure-hint").textContent = `Step time relative to ${result.names[0]}: the middle of ${result.samples} samples of hashed paths and uncertain figures, and the range from the 5th to the 95th percentile. The band is ± 1 %, which the models do not resolve; a range that includes zero is no difference.`;
  const reach = 1.15 * Math.max(0.015, ...rows.flatMap((row) => [Math.abs(row.p5), Math.abs(row.p95)]));
  draw("spread", rows.length * 40 + 46, (width) => ({
    grid: { left: nameWidth(width), right: 20, top: 6, bottom: 30 },
    tooltip: tooltip({ formatter: (p) => `${signed(rows[p.dataIndex].p50)}, from ${signed(rows[p.dataIndex].p5)} to ${signed(rows[p.dataIndex].p95)}` }),
    xAxis: { type: "value", min: -reach, max: reach, axisLabel: { formatter: signed, color: scheme.soft, hideOverlap: true }, splitLine: { lineStyle: { color: scheme.line } } },
    yAxis: { type: "category", inverse: true, data: result.names.slice(1), ...axisLine(), axisLabel: { color: scheme.ink, width: nameWidth(width) - 8, overflow: "truncate" } },
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
  const differs = (row) => row.relative.some((each) => each === null || Math.abs(each) >= 0.01);
  const shown = result.rows.filter((row) => everyRow || row.metric === "step.seconds" || differs(row));
  const text = (row) => unitTexts[row.unit] || digits;
  const head = result.names.flatMap((name, i) => [`<th class="number">${escapeText(name)}</th>`, i === 0 ? "" : '<th class="number">difference</th>']).join("");
  const body = shown.map((row) => `<tr><td title="${escapeText(row.metric)}">${escapeText(metricName(row.metric))}</td>` + row.values.map((value, i) => {
    const relative = row.relative[i], same = i > 0 && relative !== null && Math.abs(relative) < 0.01;
    return `<td class="number" data-value="${value}">${text(row)(value)}</td>` + (i === 0 ? "" : `<td class="number${same ? " same" : ""}">${signed(relative)}</td>`);
  }).join("") + "</tr>").join("");
  element("rows").innerHTML = `<div class="scroll" tabindex="0"><table><thead><tr><th>figure</th>${head}</tr></thead><tbody>${body}</tbody></table></div>`;
};
const rangeText = (range) => {
  const money = (value) => (value >= 1e4 ? scaled(value, metric, "").join(" ").trim() : whole(Math.round(value)));
  return range.low === range.high ? money(range.usual) : `${money(range.usual)} (${money(range.low)} to ${money(range.high)})`;
};
const drawBills = () => {
  if (!extra.bills.some(Boolean)) return element("costs").remove();
  element("bills").innerHTML = extra.bills.map((bill, i) => (bill ? `<h3>${escapeText(result.names[i])}</h3><div class="scroll" tabindex="0"><table>` +
    '<thead><tr><th>part</th><th class="number">count</th><th class="number">USD each</th><th>from</th></tr></thead><tbody>' +
    bill.items.map((item) => `<tr><td>${escapeText(item.name || item.id)}</td><td class="number">${whole(item.count)}</td>` +
      `<td class="number">${item.usd_each ? rangeText(item.usd_each) : "not known"}</td><td>${escapeText(item.price_source)}</td></tr>`).join("") +
    `<tr><td><b>fabric: switches, cables, NICs beside servers</b></td><td></td><td class="number"><b>${rangeText(bill.fabric_usd)}</b></td><td></td></tr>` +
    `<tr><td><b>everything</b></td><td></td><td class="number"><b>${rangeText(bill.capital_usd)}</b></td><td>${scaled(bill.watts, metric, "W").join(" ")} at full load</td></tr>` +
    `</tbody></table></div>${bill.remarks.map((remark) => `<p class="hint">${escapeText(remark)}</p>`).join("")}` : "")).join("");
};
pages.compare = () => {
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
  const remarks = result.remarks.map((remark) => `\n# ${remark}`).join("");
  element("command").textContent = `topsim compare ${result.names.map((name) => `${name}.json`).join(" ")}${remarks}`;
  extra.results.forEach((each, i) => button("save", `Save ${result.names[i]}.json`, null, () => saveFile(`${result.names[i]}.json`, JSON.stringify(each.scenario, null, 2) + "\n")));
  drawWords();
};
