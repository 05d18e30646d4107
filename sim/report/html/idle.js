// The answer: four figures, one sentence, and where the step's time goes.
const drawAnswer = () => {
  const { step, throughput, accelerators, memory } = result;
  const busy = step.seconds > 0 ? accelerators.busy_seconds / step.seconds : 0;
  const card = (id, label, parts, note, raw) =>
    `<div class="card"><div class="label">${label}</div><div class="value" id="${id}" data-value="${raw}">${escapeText(parts[0])}` +
    `<small>${escapeText(parts[1])}</small></div><div class="note">${note}</div></div>`;
  const each = step.per_step.length;
  const cards = [
    card("step-time", "Step time", durationParts(step.seconds), each > 1 ? `mean of ${each} measured steps` : "one measured step", step.seconds),
    card("tokens", "Throughput", [countParts(throughput.tokens_per_second).join(" "), "tokens/s"],
      `${digits(throughput.samples_per_second)} samples/s`, throughput.tokens_per_second),
    card("mfu", "Model FLOPs utilisation", [digits(throughput.mfu * 100), "%"],
      `${digits(throughput.model_tflops_per_accelerator)} TFLOP/s each`, throughput.mfu),
    card("busy", "Accelerators busy", [digits(busy * 100), "%"], `${duration(step.seconds - accelerators.busy_seconds)} idle a step`, busy),
    card("memory-use", "Memory of the fullest", memory.capacity_bytes ? memoryText(memory.per_accelerator_bytes).split(" ") : ["–", ""],
      memory.capacity_bytes ? `of ${memoryText(memory.capacity_bytes)}${memory.fits ? "" : ": <b>does not fit</b>"}` : "not known for a trace",
      memory.per_accelerator_bytes),
  ];
  element("answer").innerHTML = cards.join("");
  const rows = idleRows(accelerators.idle_seconds);
  const share = (seconds) => percent(step.seconds > 0 ? seconds / step.seconds : 0);
  let text = `Accelerators compute for ${percent(busy)} of the step. `;
  if (rows.length > 0) {
    const [first, second] = rows;
    text += `They sit idle mostly because of ${reasonNames[first[0]] || first[0]} (${reasonMeanings[first[0]]}): ` +
      `${duration(first[1])} of every ${duration(step.seconds)} step, ${share(first[1])}`;
    text += second && second[1] > 0.05 * first[1] ? `; then ${reasonNames[second[0]]}, ${share(second[1])}.` : ".";
  } else {
    text += "They never wait.";
  }
  element("sentence").textContent = text;
};
const drawIdle = () => {
  const { step, accelerators } = result;
  const rows = idleRows(accelerators.idle_seconds);
  const parts = [["busy", accelerators.busy_seconds, busyColour], ...rows.map(([key, seconds]) => [stateName(key), seconds, stateColours[key]])];
  draw("split", 64, () => ({
    grid: { left: 2, right: 2, top: 4, bottom: 28 },
    legend: { bottom: 0, left: 0, type: "scroll", icon: "roundRect", itemWidth: 12, itemHeight: 12, textStyle: { color: scheme.ink } },
    tooltip: tooltip({ formatter: (p) => `<b>${p.seriesName}</b><br>${duration(p.value)} of ${duration(step.seconds)}, ${percent(p.value / step.seconds)}` }),
    xAxis: { type: "value", show: false, max: step.seconds || 1 }, yAxis: { type: "category", show: false, data: [""] },
    series: parts.map(([name, seconds, colour]) => ({ name, type: "bar", stack: "step", barWidth: 26, data: [seconds], itemStyle: { color: colour },
      label: { show: seconds > 0.07 * step.seconds, formatter: () => percent(seconds / step.seconds), color: name === "busy" ? "#fff" : "#17202b" } })),
  }));
  if (rows.length > 0) {
    bars("reasons", rows.map(([key, seconds]) => ({ name: stateName(key), value: seconds, colour: stateColours[key],
      text: `${duration(seconds)}  ${percent(seconds / step.seconds)}`, meaning: reasonMeanings[key] })), "seconds");
  } else {
    element("reasons").textContent = "No accelerator waits.";
  }
  const shown = result.ranks.slice(0, 24);
  const keys = [...new Set(shown.flatMap((row) => Object.keys(row.idle_seconds)))].filter((key) => shown.some((row) => row.idle_seconds[key] > 0));
  draw("classes", shown.length * 24 + 30, () => ({
    grid: { left: 206, right: 16, top: 4, bottom: 24 },
    tooltip: tooltip({ trigger: "axis", axisPointer: { type: "shadow" }, valueFormatter: (value) => `${duration(value)}, ${percent(value / step.seconds)}` }),
    xAxis: { type: "value", max: step.seconds || 1, axisLabel: { formatter: duration, color: scheme.soft, hideOverlap: true, showMaxLabel: false }, splitLine: { lineStyle: { color: scheme.line } } },
    yAxis: { type: "category", inverse: true, data: shown.map((row) => trackName(row)),
      axisTick: { show: false }, axisLine: { show: false }, axisLabel: { color: scheme.ink, fontSize: 11.5, width: 200, overflow: "truncate" } },
    series: [["busy", busyColour, (row) => row.busy_seconds], ...keys.map((key) => [stateName(key), stateColours[key], (row) => row.idle_seconds[key]])]
      .map(([name, color, value]) => ({ name, type: "bar", stack: "s", barWidth: 15, itemStyle: { color }, data: shown.map(value) })),
  }));
};
