// Of its busy seconds.
const slowedSeconds = (one) => one.slowed_seconds || 0;
// The answer: five or six figures, one sentence, and where the step's time goes.
const drawAnswer = () => {
  const { step, throughput, accelerators, memory } = result, unknown = !measured ? "no step was measured" : workload.trace ? "not known for a trace" : "not known";
  const busy = step.seconds > 0 ? accelerators.busy_seconds / step.seconds : 0;
  const card = (id, label, parts, note, raw) =>
    `<div class="card"><div class="label">${label}</div><div class="value" id="${id}" data-value="${raw}">${escapeText(parts[0])}` +
    `<small>${escapeText(parts[1] ?? "")}</small></div><div class="note">${note}</div></div>`;
  const each = step.per_step.length;
  const cards = [
    measured ? card("step-time", "Step time", durationParts(step.seconds), each > 1 ? `mean of ${each} measured steps` : "one measured step", step.seconds) : card("step-time", "Step time", ["–"], unknown, 0),
    throughput.tokens_per_second > 0 ? card("tokens", "Throughput", [countParts(throughput.tokens_per_second).join(" "), "tokens/s"],
      `${digits(throughput.samples_per_second)} samples/s`, throughput.tokens_per_second) : card("tokens", "Throughput", ["–"], unknown, 0),
    throughput.mfu > 0 ? card("mfu", "Model FLOPs utilisation", [digits(throughput.mfu * 100), "%"],
      `${digits(throughput.model_tflops_per_accelerator)} TFLOP/s each`, throughput.mfu) : card("mfu", "Model FLOPs utilisation", ["–"], unknown, 0),
    measured ? card("busy", "Accelerators busy", [digits(busy * 100), "%"], `${duration(step.seconds - accelerators.busy_seconds)} idle a step`, busy) : card("busy", "Accelerators busy", ["–"], unknown, 0),
    card("memory-use", "Memory of the fullest", memory.capacity_bytes ? memoryText(memory.per_accelerator_bytes).split(" ") : ["–", ""],
      memory.capacity_bytes ? (memory.fits ? `of ${memoryText(memory.capacity_bytes)}` : `of ${memoryText(memory.usable_bytes ?? memory.capacity_bytes)}: <b>does not fit</b>`) : workload.trace ? "not known for a trace" : "not known",
      memory.per_accelerator_bytes),
    ...(result.reliability ? [card("goodput", "Goodput", percent(result.reliability.goodput.usual).split(" "), goodputNote(result.reliability), result.reliability.goodput.usual)] : []),
  ];
  element("answer").innerHTML = cards.join("");
  if (!measured) return element("sentence").remove();
  const rows = idleRows(accelerators.idle_seconds);
  const share = (seconds) => percent(step.seconds > 0 ? seconds / step.seconds : 0);
  let text = `${whatRan()} takes ${duration(step.seconds)}. Accelerators compute for ${percent(busy)} of it. `;
  const slowed = slowedSeconds(accelerators);
  if (slowed > 0.01 * step.seconds) text += `Of that, ${duration(slowed)} (${share(slowed)}) is lost to communication beside the kernels, which takes compute units and memory bandwidth from them. `;
  const communicating = accelerators.communication_seconds || 0;
  if (communicating > 0.01 * step.seconds) text += `Communication is under way for ${duration(communicating)} (${share(communicating)}), ${percent(accelerators.hidden_communication_seconds / communicating)} of it hidden beside computation. `;
  if (slowedAdvice() && slowed > (rows[0]?.[1] ?? 0)) {
    text += `What shortens it: ${escapeText(slowedAdvice())}.`;
  } else if (rows.length > 0) {
    const [first, second] = rows;
    text += `Accelerators sit idle mostly because of ${reasonNames[first[0]] || first[0]} (${reasonMeanings[first[0]]}): ` +
      `${duration(first[1])} of it, ${share(first[1])}`;
    text += second && second[1] > 0.05 * first[1] ? `; then ${reasonNames[second[0]]}, ${share(second[1])}. ` : ". ";
    if (first[1] > 0.02 * step.seconds && adviceFor(first[0])) text += `What usually helps: ${adviceFor(first[0])}.`;
  } else {
    text += "They never wait.";
  }
  element("sentence").innerHTML = unbroken(text);
};
const splitOf = (one) => [["busy", one.busy_seconds - slowedSeconds(one), busyColour, "computing"],
  ...(slowedSeconds(one) > 0 ? [["busy, slowed", slowedSeconds(one), slowedColour, "kernels that communication beside them makes longer"]] : []),
  ...idleRows(one.idle_seconds).map(([key, seconds]) => [stateName(key), seconds, stateColours[key], reasonMeanings[key]])];
// The first classes alone would all be of one pipeline stage.
const evenly = (rows, most) => (rows.length <= most ? rows : Array.from({ length: most }, (_, i) => rows[Math.floor((i * rows.length) / most)]));
const drawIdle = () => {
  const { step, accelerators } = result;
  const rows = idleRows(accelerators.idle_seconds);
  partsBar("split", splitOf(accelerators), step.seconds, duration);
  if (rows.length > 0) {
    bars("reasons", rows.map(([key, seconds]) => ({ name: stateName(key), value: seconds, colour: stateColours[key],
      text: `${duration(seconds)}  ${percent(seconds / step.seconds)}`, meaning: reasonMeanings[key] })));
  } else {
    element("reasons").textContent = "No accelerator waits.";
  }
  const shown = evenly(result.ranks, 24);
  if (result.ranks.length > shown.length) element("classes-hint").textContent = `${shown.length} of ${whole(result.ranks.length)} classes are shown, spread evenly; all are in the table below.`;
  stackedSplits("classes", shown.map(trackName), shown, step.seconds);
};
// One bar a row, each split into work and reasons to wait.
const stackedSplits = (id, names, rows, longest) => {
  const keys = [...new Set(rows.flatMap((row) => Object.keys(row.idle_seconds)))].filter((key) => rows.some((row) => row.idle_seconds[key] > 0));
  draw(id, rows.length * 24 + 30, (width) => ({
    grid: { left: nameWidth(width), right: 16, top: 4, bottom: 24 },
    tooltip: tooltip({ trigger: "axis", axisPointer: { type: "shadow" }, valueFormatter: (value) => `${duration(value || 0)}, ${percent((value || 0) / longest)}` }),
    xAxis: timeAxis(longest, width - nameWidth(width) - 16),
    yAxis: { type: "category", inverse: true, data: names, axisTick: { show: false }, axisLine: { show: false },
      axisLabel: nameLabel(nameWidth(width), 11.5) },
    series: [["busy", busyColour, (row) => row.busy_seconds - slowedSeconds(row)],
      ...(rows.some((row) => slowedSeconds(row) > 0) ? [["busy, slowed", slowedColour, slowedSeconds]] : []), ...keys.map((key) => [stateName(key), stateColours[key], (row) => row.idle_seconds[key] || 0])]
      .map(([name, color, value]) => ({ name, type: "bar", stack: "s", barWidth: 15, itemStyle: { color }, data: rows.map(value) })),
  }));
};
