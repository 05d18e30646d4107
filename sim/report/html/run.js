// The page of one run.
const drawHead = () => {
  element("headline").innerHTML = unbroken((result.headline || result.name).replace(/(\d) x /g, "$1 × "));
  element("description").textContent = result.scenario.description || "";
  if (!result.complete) {
    element("banner").hidden = false;
    element("banner").textContent = result.step.per_step.length > 0
      ? "This run was interrupted: every figure covers only the part that was simulated."
      : "This run was interrupted before its first measured step ended: there is no step time, and no other figure means anything.";
  }
  foot(result, `, ${result.network.model} network model, ` +
    `${plural(result.network.flows, "flow")}${result.network.packets ? `, ${plural(result.network.packets, "packet")}` : ""}, seed ${result.seed}`);
};
const drawFindings = () => {
  element("findings").innerHTML = result.findings.map((each) => `<li class="${each.severity}"><b>${each.severity === "warning" ? "⚠ " : ""}${escapeText(each.message)}</b>` +
    `${each.remedy ? `<div class="remedy">${escapeText(each.remedy)}</div>` : ""}${each.path ? `<code>${escapeText(each.path)}</code>` : ""}</li>`).join("") ||
    "<li>Nothing about this run needs a remark.</li>";
};
const saveFile = (name, text) => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
};
// explain simulates also what does not fit.
const runCommand = (file) => (extra.what_if ? `topsim explain ${file} --faster ${fasterPercent()} --html report.html`
  : `topsim run ${file}${result.memory.fits ? "" : " --allow-oom"} --html report.html`);
const drawReproduce = () => {
  const file = `${fileName(result.name || "scenario")}.json`, text = JSON.stringify(result.scenario, null, 2);
  element("file").textContent = file;
  element("command").textContent = runCommand(file);
  element("scenario").textContent = text;
  const open = result.left_open || {};
  if (open.framework) element("release").textContent = open.framework;
  element("left-open").textContent = JSON.stringify(open, null, 2);
  element("save").onclick = () => saveFile(file, text + "\n");
};
const limitColour = (what) => (what === "computation" ? busyColour : what.startsWith("computation") ? slowedColour : what === "host" ? stateColours.host : what.startsWith("latency") ? "#9aa3ad" : /as .* drives it$/.test(what) ? "#e69f00" : "#d55e00");
const operationColour = (what) => {
  if (/(forward|embedding|loss|head)$/.test(what)) return stateColours.forward;
  if (/backward/.test(what)) return stateColours.backward;
  if (/optimizer/.test(what)) return stateColours.optimizer;
  return /(reduce|gather|scatter|all|send|recv|broadcast|transfer)/.test(what) ? stateColours.tensor_parallel : "#9aa3ad";
};
const fasterPercent = () => +((extra.what_if.factor - 1) * 100).toPrecision(12);
// What each part 10 % faster would save, simulated again, where the page was made so.
const drawGains = () => {
  const simulated = extra.what_if;
  if (!simulated) return element("upgrade").remove();
  element("upgrade-hint").textContent = `Each part alone ${fasterPercent()} % faster, and the step simulated again: the share of the step it saves. A part that saves nothing is not worth money for this job.`;
  bars("gains", simulated.parts.map((part) => ({ name: part.part, value: Math.max(0, part.gain),
    text: Math.abs(part.gain) < 5e-4 ? "nothing" : `${percent(Math.abs(part.gain))}${part.gain < 0 ? " longer" : ""}`,
    meaning: `step ${duration(part.step_seconds)} in place of ${duration(simulated.step_seconds)}`, colour: busyColour })));
};
const followHash = (showRanks) => {
  showRanks();
  const link = hash().get("link");
  if (link && result.links.some((each) => each.id === link)) showLinks(result.links.find((each) => each.id === link).type, [link], true);
  if (chosenClass() < 0) return;
  element("numbers").scrollIntoView();
  document.querySelector("tr.chosen")?.scrollIntoView({ block: "center" });
};
pages.run = () => {
  if (result.links.length === 0) element("heat-section").remove();
  if (result.collectives.length === 0) element("collectives-section").remove();
  // What a step is made of, where none was measured.
  if (!measured) for (const id of ["why", "time", "path"]) element(id).remove();
  drawHead();
  drawAnswer();
  if (measured) drawIdle();
  drawFindings();
  drawGoodput();
  drawGains();
  drawTopology();
  if (measured) drawTimeline();
  if (result.links.length > 0) drawHeat();
  const showRanks = drawTables();
  if (measured) drawPath("path-ops", result.critical_path, operationColour);
  if (measured) drawPath("path-limits", result.critical_path_links, limitColour);
  drawMemory();
  drawReproduce();
  drawWords();
  addEventListener("hashchange", () => followHash(showRanks));
  followHash(showRanks);
};
