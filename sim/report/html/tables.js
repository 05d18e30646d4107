// Tables that sort by their headings. A column: [heading, row -> value, value -> text, more].
const table = (id, caption, columns, rows, options = {}) => {
  let by = options.by ?? 0, down = !options.up;
  const limit = 300, at = element(id), late = options.late || (() => 0);  // late: rows that stay below the others
  const compare = (a, b) => (typeof a === "number" ? a - b : String(a).localeCompare(String(b)));
  const show = () => {
    const sorted = by < 0 ? rows : [...rows].sort((a, b) => late(a) - late(b) || (down ? -1 : 1) * compare(columns[by][1](a), columns[by][1](b)));
    const number = (i) => (rows.length > 0 && typeof columns[i][1](rows[0]) === "number" ? ' class="number"' : "");
    const head = columns.map(([heading], i) => `<th scope="col"${number(i)}${i === by ? ` aria-sort="${down ? "descending" : "ascending"}"` : ""}>` +
      `<button type="button" data-column="${i}">${heading}${i === by ? (down ? " ↓" : " ↑") : ""}</button></th>`).join("");
    const body = sorted.slice(0, limit).map((row) => `<tr${options.act ? ` data-row="${rows.indexOf(row)}" tabindex="0"` : ""}${options.mark ? options.mark(row) : ""}>` + columns.map(([, value, text, more], i) =>
      `<td${number(i)} data-value="${escapeText(value(row))}">${escapeText(text ? text(value(row), row) : value(row))}${more ? more(row) : ""}</td>`).join("") + "</tr>").join("");
    at.innerHTML = `<div class="scroll" tabindex="0"><table><caption hidden>${caption}</caption><thead><tr>${head}</tr></thead><tbody>${body}</tbody></table></div>` +
      (rows.length > limit ? `<p class="hint">The first ${limit} of ${whole(rows.length)} rows; the saved JSON has all.</p>` : "");
  };
  at.addEventListener("click", (event) => {
    const column = event.target.dataset.column, row = event.target.closest("[data-row]");
    if (row) options.act(rows[+row.dataset.row]);
    if (column === undefined) return;
    down = by === +column ? !down : true;
    by = +column;
    show();
    at.querySelector(`[data-column="${by}"]`).focus();
  });
  at.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && event.target.dataset.row) options.act(rows[+event.target.dataset.row]);
  });
  show();
  return show;
};
const meter = (share) => `<span class="meter"><i style="width:${Math.min(100, share * 100).toFixed(1)}%;${["light", "dark"].map((name) => `--${name}:${colourAt(schemes[name].ramp, 0.15 + 0.85 * share)}`).join(";")}"></i></span>`;

const drawTables = () => {
  // What was carried before a measured step ended is of no step.
  const each = measured ? "a step" : "so far";
  if (result.links.length > 0) table("links", "Links", [
    ["link", (row) => row.id], ["alike", (row) => row.count, whole], ["type", (row) => row.type],
    ["mean use", (row) => row.utilization, percent, (row) => meter(row.utilization)],
    ["highest", (row) => row.peak_utilization, percent, (row) => meter(row.peak_utilization)],
    [`carried ${each}`, (row) => row.bytes / steps, bytes], ["usable speed", (row) => row.capacity, rate], [`busy ${each}`, (row) => row.busy_seconds / steps, duration],
  ], result.links, { by: 3, act: (row) => showLinks(row.type, [row.id], true) });
  if (result.collectives.length > 0) table("collectives", "Collectives", [
    ["for", (row) => `${row.group} ${row.kind}`], ["ranks", (row) => row.group_size, whole], [`calls ${each}`, callsOfARank, count],
    ["size", (row) => row.bytes, memoryText], ["each", (row) => row.seconds_each, duration],
    [`time ${each}`, (row) => row.seconds_each * callsOfARank(row), duration],
    ["bus bandwidth", (row) => row.bus_bandwidth, rate], ["algorithm", (row) => [row.algorithm, row.protocol].filter(Boolean).join(", ") + (row.channels ? `, ${plural(row.channels, "channel")}` : "")],
  ], result.collectives, { by: 5 });
  const showRanks = table("ranks", "Ranks", [
    ["first rank", (row) => row.rank, whole], ["alike", (row) => row.count, whole], ["device", (row) => row.device], ["program", (row) => row.program],
    ...(!measured ? [] : [["busy", (row) => row.busy_seconds, duration, (row) => " " + percent(result.step.seconds > 0 ? row.busy_seconds / result.step.seconds : 0)],
    ["idle", (row) => Object.values(row.idle_seconds).reduce((a, b) => a + b, 0), duration],
    ["mostly", (row) => { const [first] = idleRows(row.idle_seconds); return first ? `${stateName(first[0])}, ${duration(first[1])}` : ""; }]]),
  ], result.ranks, { by: -1, mark: (row) => (row === result.ranks[chosenClass()] ? ' class="chosen"' : "") });
  return showRanks;
};
const chosenClass = () => (hash().has("rank") ? classOfRank(+hash().get("rank")) : -1);

const drawPath = (id, rows, colour) => {
  if (rows.length === 0) { element(id).textContent = "Not known for this run."; return; }
  const shown = rows.slice(0, 12), rest = rows.slice(12);
  if (rest.length > 0) {
    shown.push({ what: plural(rest.length, "smaller part"), seconds: rest.reduce((a, r) => a + r.seconds, 0), share: rest.reduce((a, r) => a + r.share, 0) });
  }
  bars(id, shown.map((row) => ({ name: row.what, value: row.seconds, text: `${duration(row.seconds)}  ${percent(row.share)}`, colour: colour(row.what) })));
};
const drawMemory = () => {
  const { parts, capacity_bytes: capacity, per_accelerator_bytes: used } = result.memory;
  const rows = Object.entries(parts).map(([name, value]) => [name === "kv_cache" ? "KV cache" : name, value]).filter(([, value]) => value > 0).sort((a, b) => b[1] - a[1]);
  if (rows.length === 0 || !capacity) { element("memory").textContent = workload.trace ? "Not known for a trace." : "Not known."; return; }
  const colours = ["#3d8fd1", "#e69f00", "#009e73", "#cc79a7", "#8c6bb1", "#7a5c3e"];
  const free = capacity > used ? [["free", capacity - used, "#c9ced4"]] : [];
  partsBar("memory", [...rows.map(([name, value], i) => [name, value, colours[i % colours.length]]), ...free], Math.max(capacity, used), memoryText);
};
