// Puts the page together; keys: t theme, 1 to 9 sections.
const drawHead = () => {
  element("headline").textContent = result.headline || result.name;
  element("description").textContent = result.scenario.description || "";
  if (!result.complete) {
    element("banner").hidden = false;
    element("banner").textContent = "This run was interrupted: every figure covers only the part that was simulated.";
  }
  element("contents").innerHTML = [...document.querySelectorAll("section")]
    .map((section) => `<a href="#${section.id}">${section.dataset.title}</a>`).join("");
  element("foot").textContent = `topsim ${result.topsim.version} (${result.topsim.commit}), ${result.network.model} network model, ` +
    `${plural(result.network.flows, "flow")}${result.network.packets ? `, ${plural(result.network.packets, "packet")}` : ""}, seed ${result.seed}. Charts: Apache ECharts.`;
};
const drawFindings = () => {
  element("findings").innerHTML = result.findings.map((each) => `<li class="${each.severity}"><b>${each.severity === "warning" ? "⚠ " : ""}${escapeText(each.message)}</b>` +
    `${each.remedy ? `<div class="remedy">${escapeText(each.remedy)}</div>` : ""}${each.path ? `<code>${escapeText(each.path)}</code>` : ""}</li>`).join("") ||
    "<li>Nothing about this run needs a remark.</li>";
};
const save = (name, text) => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
};
const drawReproduce = () => {
  const file = `${result.name || "scenario"}.json`, text = JSON.stringify(result.scenario, null, 2);
  element("file").textContent = file;
  element("command").textContent = `topsim run ${file} --html report.html`;
  element("scenario").textContent = text;
  element("save").onclick = () => save(file, text + "\n");
  element("save-result").onclick = () => save("result.json", element("result").textContent);
};
const limitColour = (what) => (what === "computation" ? busyColour : what === "host" ? stateColours.host : what.startsWith("latency") ? "#9aa3ad" : "#d55e00");
const operationColour = (what) => {
  if (/(forward|embedding|loss|head)$/.test(what)) return stateColours.forward;
  if (/backward/.test(what)) return stateColours.backward;
  if (/optimizer/.test(what)) return stateColours.optimizer;
  return /(reduce|gather|scatter|all|send|recv|broadcast|transfer)/.test(what) ? stateColours.tensor_parallel : "#9aa3ad";
};

const began = performance.now();
document.documentElement.dataset.theme = themeName();
scheme = schemes[themeName()] || schemes.light;
drawHead();
drawAnswer();
drawIdle();
drawFindings();
drawTopology();
drawTimeline();
drawHeat();
const showRanks = drawTables();
drawPath("path-ops", result.critical_path, operationColour);
drawPath("path-limits", result.critical_path_links, limitColour);
drawMemory();
drawReproduce();

const followHash = () => {
  showRanks();
  const chosen = chosenClass();
  if (chosen < 0) return;
  element("numbers").scrollIntoView();
  document.querySelector("tr.chosen")?.scrollIntoView({ block: "center" });
};
const switchTheme = () => {
  const next = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  try { localStorage.setItem("topsim-theme", next); } catch { /* a browser without storage still switches */ }
  applyTheme(next);
};
element("theme").onclick = switchTheme;
addEventListener("hashchange", followHash);
addEventListener("resize", () => drawn.forEach((each) => each.chart.resize()));
addEventListener("beforeprint", () => { applyTheme("light"); drawn.forEach((each) => each.chart.resize({ width: 700 })); });
addEventListener("afterprint", () => { applyTheme(themeName()); drawn.forEach((each) => each.chart.resize({ width: "auto" })); });
addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || /INPUT|TEXTAREA/.test(event.target.tagName)) return;
  if (event.key === "t") switchTheme();
  const section = document.querySelectorAll("section")[+event.key - 1];
  if (section && !event.target.closest("#timeline")) section.scrollIntoView();
});
followHash();
document.documentElement.dataset.drawn = Math.round(performance.now() - began);  // milliseconds; says that all is there
