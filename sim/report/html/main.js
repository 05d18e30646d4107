// Puts the page together; keys: t theme, 1 to 9 sections, ? the list of keys.
const began = performance.now();
const kind = document.documentElement.dataset.kind;
document.documentElement.dataset.theme = themeName();
scheme = schemes[themeName()] || schemes.light;
element("main").replaceChildren(element(`sections-${kind}`).content);
for (const sections of document.querySelectorAll("template")) sections.remove();
if (tasks.length > 0 && tasks.every((task) => task === "trace")) speakOfATrace();
pages[kind]();
const save = element("save-result");
if (save) save.onclick = () => saveFile(`${kind === "run" ? "result" : kind}.json`, element("result").textContent);
element("contents").innerHTML = [...document.querySelectorAll("section")]
  .map((section) => `<a href="#${section.id}">${section.dataset.title}</a>`).join("");

const switchTheme = () => {
  const next = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  try { localStorage.setItem("topsim-theme", next); } catch { /* a browser without storage still switches */ }
  applyTheme(next);
};
element("theme").onclick = switchTheme;
element("keys").onclick = () => element("help").showModal();
let resized = 0;
addEventListener("resize", () => {
  cancelAnimationFrame(resized);
  resized = requestAnimationFrame(() => redraw());
});
addEventListener("beforeprint", () => { applyTheme("light"); redraw(paperWidth); });
addEventListener("afterprint", () => applyTheme(themeName()));
addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || /INPUT|TEXTAREA|SELECT/.test(event.target.tagName)) return;
  if (event.key === "t") switchTheme();
  if (event.key === "?") element("help").showModal();
  const section = document.querySelectorAll("section")[+event.key - 1];
  if (section) section.scrollIntoView();
});
// Sections came after the browser had looked for the one in the address.
if (/^#[\w-]+$/.test(location.hash)) element(location.hash.slice(1))?.scrollIntoView({ behavior: "instant" });
document.documentElement.dataset.drawn = Math.round(performance.now() - began);  // milliseconds; says that all is there
