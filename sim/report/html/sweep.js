// The page of a sweep: the best point, the chosen figure over what was varied, trade-offs, every point.
const figureOf = (name) => result.figures.find((each) => each.name === name);
const figureForms = {
  s: duration, 1: percent, B: memoryText, W: (value) => scaled(value, metric, "W").join(" "),
  USD: (value) => `${value >= 1000 ? countParts(value).join(" ") : digits(value)} USD`,
  count: (value) => (Number.isInteger(value) ? whole(value) : countParts(value).join(" ").trim()),
};
const figureText = (name) => figureForms[figureOf(name).unit];
const moreIsBetter = (name) => figureOf(name).more_is_better;
const figureName = (name) => figureOf(name).label;
const mainFigures = () => result.figures.filter((each) => each.main).map((each) => each.name);
// By what the sweep ranks first, then what is asked for first.
const inOrder = (figures) => [...new Set([result.best.figure, ...mainFigures().filter((name) => figures.includes(name)), ...figures])];
const shortPath = (path) => path.split(".").pop();
const valueText = (value) => (typeof value === "string" ? value : JSON.stringify(value));
// A point for whose cables a part lacks the ports is simulated, and is never the best; one that does not fit the memory only where none fits.
const canBeBuilt = (row) => row.can_be_built !== false;
const fits = (row) => row.fits !== false;
const memoryOf = (row) => `${memoryText(row.figures.memory_bytes)} of ${memoryText(row.figures.memory_usable_bytes)}`;
// Points that run several releases of a framework that was named alone say which.
const releaseText = (row) => (result.assumed_releases && row.assumed_release ? ` (${row.assumed_release})` : "");
const settingsText = (row) => result.paths.map((path) => `${shortPath(path)} ${valueText(row.values[path])}`).join(" · ");
const pointText = (row) => settingsText(row) + releaseText(row) + (canBeBuilt(row) ? "" : " (cannot be built)") + (fits(row) ? "" : ` (does not fit: ${memoryOf(row)})`);
// Among these the best is looked for, and colours tell good from bad.
const eligible = (rows) => (rows.some((row) => canBeBuilt(row) && fits(row)) ? rows.filter((row) => canBeBuilt(row) && fits(row)) : rows.filter(canBeBuilt));
const distinct = (rows, path) => [...new Map(rows.map((row) => [JSON.stringify(row.values[path]), row.values[path]])).values()]
  .sort((a, b) => (typeof a === "number" && typeof b === "number" ? a - b : 0));
// As the finding of a run (report/findings.hpp, kNearlyFull): fragmentation commonly takes the rest.
const nearlyFull = (row) => fits(row) && row.figures.memory_capacity_bytes > 0 && row.figures.memory_bytes >= 0.92 * row.figures.memory_capacity_bytes;
const distinctFigures = (rows, name) => new Set(rows.map((row) => row.figures[name])).size;
const bestRow = (rows, figure) => eligible(rows.filter((row) => row.figures[figure] !== null))
  .reduce((best, row) => (best === null || (moreIsBetter(figure) ? row.figures[figure] > best.figures[figure] : row.figures[figure] < best.figures[figure]) ? row : best), null);

// One path: bars; two: a table of colours; more: a line through the values of each point.
const drawPicture = (rows, failed, figures, varied) => {
  let figure = result.best.figure;
  const text = (value) => figureText(figure)(value), [one, two] = varied, unfit = rows.some((row) => !fits(row));
  const told = (row, between) => text(row.figures[figure]) + (fits(row) ? "" : `${between}does not fit`);
  const shareOf = () => {
    const all = eligible(rows).map((row) => row.figures[figure]).filter((value) => value !== null), low = Math.min(...all), high = Math.max(...all);
    return (value) => 0.15 + 0.85 * (high > low ? (moreIsBetter(figure) ? value - low : high - value) / (high - low) : 1);
  };
  const every = [...rows, ...failed];  // a value of which no point ran is a place, too
  const at = (row, path) => distinct(every, path).findIndex((value) => JSON.stringify(value) === JSON.stringify(row.values[path]));
  const overBars = (width) => ({
    grid: { left: nameWidth(width), right: unfit ? 165 : 130, top: 4, bottom: 4 }, tooltip: tooltip({ formatter: (p) => `${escapeText(pointText(rows[p.dataIndex]))}<br>${text(p.value)}` }),
    xAxis: { type: "value", show: false },
    yAxis: { type: "category", inverse: true, data: rows.map(settingsText), axisTick: { show: false }, axisLine: { show: false }, axisLabel: { color: scheme.ink, width: nameWidth(width) - 8, overflow: "truncate" } },
    series: [{ type: "bar", barMaxWidth: 18, itemStyle: { borderRadius: 3 }, label: { show: true, position: "right", color: scheme.ink, formatter: (p) => told(rows[p.dataIndex], ", ") },
      data: rows.map((row) => ({ value: row.figures[figure], itemStyle: { color: row === bestRow(rows, figure) ? "#e69f00" : fits(row) ? busyColour : scheme.idle } })) }],
  });
  const overTwo = (width) => {
    const share = shareOf(), best = bestRow(rows, figure), colourOf = (row) => (fits(row) ? hexAt(scheme.heat.slice(0, 4), share(row.figures[figure])) : scheme.idle);
    return {
      grid: { left: nameWidth(width, 150), right: 10, top: 6, bottom: 46 },
      tooltip: tooltip({ formatter: (p) => `${escapeText(pointText(p.data.row))}<br><b>${text(p.data.row.figures[figure])}</b>` }),
      xAxis: { type: "category", data: distinct(every, one).map(valueText), name: shortPath(one), nameLocation: "middle", nameGap: 28, nameTextStyle: { color: scheme.ink }, ...axisLine(), axisLabel: { color: scheme.ink } },
      yAxis: { type: "category", data: distinct(every, two).map(valueText), name: shortPath(two), nameTextStyle: { color: scheme.ink }, nameLocation: "middle", nameGap: nameWidth(width, 150) - 24, ...axisLine(), axisLabel: { color: scheme.ink } },
      // The best one last: its frame lies over its neighbours.
      series: [{ type: "heatmap", label: { show: true, lineHeight: 14, formatter: (p) => told(p.data.row, "\n") },
        data: rows.filter((row) => row.figures[figure] !== null).sort((a, b) => (a === best) - (b === best)).map((row) => ({ row, value: [at(row, one), at(row, two), row.figures[figure]],
          label: { color: inkOn(colourOf(row)) },
          itemStyle: { color: colourOf(row), ...(row === best ? { borderColor: scheme.ink, borderWidth: 2 } : {}) } })) }],
    };
  };
  const overMany = () => {
    const share = shareOf(), best = bestRow(rows, figure);
    // Many numbers have an axis of numbers; a place for each would be a smear of labels.
    const numeric = (path) => distinct(rows, path).length > 12 && distinct(rows, path).every((value) => typeof value === "number");
    const axes = varied.map((path, dim) => ({ dim, name: shortPath(path), ...(numeric(path) ? { type: "value", scale: true, axisLabel: { formatter: valueText } } : { type: "category", data: distinct(rows, path).map(valueText) }) }));
    const over = { color: scheme.ink, textBorderColor: scheme.panel, textBorderWidth: 3 };  // lines cross them
    return {
      parallel: { left: 50, right: 70, top: 34, bottom: 18, parallelAxisDefault: { nameTextStyle: { color: scheme.ink }, axisLabel: over, axisLine: { lineStyle: { color: scheme.soft } } } },
      parallelAxis: [...axes.map((axis) => ({ ...axis, axisLabel: { ...over, ...axis.axisLabel } })), { dim: varied.length, name: figureName(figure), axisLabel: { ...over, formatter: text }, scale: true }], tooltip: tooltip(),
      series: [{ type: "parallel", smooth: 0.15, lineStyle: { width: 1.6, opacity: 0.55 }, data: rows.filter((row) => row.figures[figure] !== null)
        .map((row) => ({ value: [...varied.map((path) => (numeric(path) ? row.values[path] : valueText(row.values[path]))), row.figures[figure]], name: pointText(row),
          lineStyle: { ...(fits(row) ? { color: colourAt(scheme.ramp, share(row.figures[figure])) } : { color: scheme.idle, type: "dashed" }), ...(row === best ? { width: 4, opacity: 1 } : {}) } })) }],
    };
  };
  const [height, make] = varied.length < 2 ? [rows.length * 28 + 12, overBars]
    : varied.length === 2 ? [distinct(every, two).length * 38 + 60, overTwo] : [380, overMany];
  element("picture-hint").textContent = varied.length < 2 ? "The best point is marked."
    : varied.length === 2 ? `The stronger the colour the better; the best point is framed. Empty places could not run${result.complete ? "" : " or were not reached"}.` : "Each line is a point: its values, and at the right the chosen figure. The best is the thick one.";
  if (unfit) element("picture-hint").textContent += ` Grey ${varied.length > 2 ? "lines" : "points"} do not fit the memory.`;
  choose("picture-tools", "figure", figures, figureName, figure, (name) => { figure = name; redraw(); });
  draw("picture", Math.max(90, Math.min(1600, height)), make);
};
const hexAt = (ramp, share) => "#" + colourAt(ramp, share).match(/\d+/g).map((part) => (+part).toString(16).padStart(2, "0")).join("");

// Ticks in the unit of the largest figure, with as many decimals as tell them apart.
const tickText = (name, rows) => {
  const all = rows.map((row) => row.figures[name]).filter((value) => value !== null), high = Math.max(...all), span = high - Math.min(...all);
  const [, number, unit] = figureText(name)(high).match(/^([\d.\s]+)(.*)$/) || [], shown = parseFloat((number || "").replace(/\s/g, ""));
  const factor = [...metric, ...binary, [1e-2], [1e-3], [1e-6], [1e-9]].map(([each]) => each).find((each) => Math.abs(high / each / shown - 1) < 0.006);
  if (!(span > 0) || span > 0.05 * high || !factor) return figureText(name);
  const places = Math.max(0, Math.ceil(-Math.log10(span / 5 / factor)));
  return (value) => `${(value / factor).toFixed(places)} ${unit}`.trim();
};

// What does not fit the memory is no offer, unless nothing fits.
const tradeGroups = (front) => [["#e69f00", 13, (row) => front.has(row.point)], [busyColour, 9, (row) => !front.has(row.point) && fits(row)], [null, 9, (row) => !front.has(row.point) && !fits(row)]];
const drawTrade = (rows, figures) => {
  const front = new Set(result.pareto.points);
  const differ = result.pareto.figures.filter((name) => distinctFigures(rows, name) > 1);
  let [x, y] = differ.length > 1 ? differ : [figures[0], figures.find((name) => name === "memory_bytes") || figures[1]];
  if (rows.length < 2 || figures.length < 2) return element("trade").remove();
  element("trade-hint").textContent = `Marked points form the Pareto set of ${result.pareto.figures.map(figureName).join(", ").replace(/, ([^,]*)$/, " and $1")}: no other point is better in all of these. ${rows.some((row) => !fits(row)) ? "Grey points do not fit the memory. " : ""}Point for its values.`;
  const step = (name) => {  // ticks of memory are whole GiB
    const all = rows.map((row) => row.figures[name]).filter((value) => value !== null), span = Math.max(...all) - Math.min(...all);
    return figureOf(name).unit === "B" && span > 0 ? { interval: roundStep(span, 5, 2 ** 30), min: (ends) => Math.floor(ends.min / roundStep(span, 5, 2 ** 30)) * roundStep(span, 5, 2 ** 30) } : {};
  };
  const axis = (name, gap) => ({ type: "value", scale: true, ...step(name), name: figureName(name), nameLocation: "middle", nameGap: gap, nameTextStyle: { color: scheme.ink },
    axisLabel: { formatter: tickText(name, rows), color: scheme.soft, hideOverlap: true }, splitLine: { lineStyle: { color: scheme.line } } });
  choose("trade-tools", "across", figures, figureName, x, (name) => { x = name; redraw(); });
  choose("trade-tools", "up", figures, figureName, y, (name) => { y = name; redraw(); });
  draw("scatter", 380, () => ({
    grid: { left: 86, right: 20, top: 12, bottom: 48 },
    tooltip: tooltip({ formatter: (p) => `<b>${escapeText(pointText(p.data.row))}</b><br>${figureName(x)} ${figureText(x)(p.value[0])}<br>${figureName(y)} ${figureText(y)(p.value[1])}` }),
    xAxis: axis(x, 30), yAxis: axis(y, 66),
    series: tradeGroups(front).map(([colour, size, holds]) => ({ type: "scatter", symbolSize: size, z: size > 9 ? 3 : 2, color: colour || scheme.soft,
      itemStyle: { opacity: size > 9 ? 1 : 0.7, borderColor: scheme.panel, borderWidth: 1 },
      data: rows.filter((row) => holds(row) && row.figures[x] !== null && row.figures[y] !== null).map((row) => ({ value: [row.figures[x], row.figures[y]], row })) })),
  }));
};
// A grid of values is said by them, all that were asked for; chosen points come from a file of their own.
const sweepCommand = () => {
  const { asked } = result, values = result.paths.map((path) => asked.values[path].map((value) => (typeof value === "string" && !/[",\s[\]{}]/.test(value) ? value : JSON.stringify(value))));
  const grid = values.reduce((product, each) => product * each.length, 1) === asked.points;
  const vary = grid ? result.paths.map((path, i) => `--vary ${quoted(`${path}=${values[i].join(",")}`)}`) : ["--points POINTS.csv"];
  return ["topsim sweep", `${fileName(result.scenario)}.json`, ...result.set.map((each) => `--set ${quoted(each)}`), ...vary, ...(asked.best ? [`--best ${asked.best}`] : []),
    ...(asked.pareto ? [`--pareto ${asked.pareto.join(",")}`] : []), ...(asked.allow_oom ? ["--allow-oom"] : []), "--html sweep.html"].join(" ");
};
// Points of which the same was said are one row, each line of their messages by itself: [[line, [row, ...]], ...].
const alikeByLine = (rows) => [...rows.reduce((groups, row) => row.message.split("\n").reduce((all, line) => all.set(line, [...(all.get(line) || []), row]), groups), new Map())];
const valuesText = (rows, path) => {
  const values = distinct(rows, path).map(valueText);
  return values.length > 4 ? `${values[0]}, ${values[1]} … ${values[values.length - 1]} (${values.length})` : values.join(", ");
};
pages.sweep = () => {
  const rows = result.rows.filter((row) => row.status === "ok"), failed = result.rows.filter((row) => row.status !== "ok");
  const figures = result.figures.map((each) => each.name).filter((name) => rows.some((row) => row.figures[name] !== null && row.figures[name] !== 0));
  const varied = result.paths.filter((path) => distinct(result.rows, path).length > 1), best = rows.find((row) => row.point === result.best.point);
  element("headline").textContent = `Sweep of ${result.scenario}`;
  element("description").textContent = `${result.complete ? "" : `${whole(result.rows.length)} of `}${plural(result.asked.points, "point")} over ${result.paths.join(", ")}${result.complete ? "" : "; interrupted, this is what was done"}.`;
  foot(result, "");
  element("notes").innerHTML = result.remarks.map((text) => `<p class="banner">${wholeNames(text)}.</p>`).join("");
  if (!best) {
    element("sentence").textContent = rows.some(canBeBuilt) ? `No point has a ${figureName(result.best.figure)}.` : rows.length > 0 ? "Points ran, but none can be built." : result.complete || failed.length > 0 ? "No point could run." : "No point was finished.";
    for (const id of ["picture-section", "trade"]) element(id).remove();
  } else {
    const last = eligible(rows).reduce((a, b) => ((moreIsBetter(result.best.figure) ? b.figures[result.best.figure] < a.figures[result.best.figure] : b.figures[result.best.figure] > a.figures[result.best.figure]) ? b : a), best);
    const text = figureText(result.best.figure);
    const those = rows.every(fits) ? "" : fits(best) ? " among the points that fit the memory" : " (no point fits the memory)";
    element("sentence").textContent = `Best by ${figureName(result.best.figure)}${those}: ${pointText(best)}, ${text(best.figures[result.best.figure])}` +
      (last === best ? "" : `; the furthest from it, ${pointText(last)}, has ${text(last.figures[result.best.figure])}`) + "." + (nearlyFull(best) ? ` The best point's memory is nearly full: ${memoryText(best.figures.memory_bytes)} of ${memoryText(best.figures.memory_capacity_bytes)}; fragmentation commonly takes the rest.` : "");
    const card = (name) => `<div class="card" title="${escapeText(figureOf(name).meaning)}"><div class="label">${figureName(name)}</div><div class="value" data-value="${best.figures[name]}">${figureText(name)(best.figures[name])}</div><div class="note">of the best point</div></div>`;
    element("answer").innerHTML = inOrder(mainFigures())
      .filter((name) => best.figures[name] !== null && best.figures[name] !== undefined).slice(0, 6).map(card).join("");
    drawPicture(rows, failed, figures, varied.length > 0 ? varied : result.paths);
    drawTrade(rows, figures);
  }
  if (rows.length === 0) element("rows-section").remove();
  else table("rows", "Points", [...result.paths.map((path) => [shortPath(path), (row) => row.values[path], valueText]),
    ...(result.assumed_releases ? [["assumed release", (row) => row.assumed_release || ""]] : []),
    ...inOrder(figures).map((name) => [figureName(name), (row) => row.figures[name] ?? NaN, (value, row) => (Number.isNaN(value) ? "" : name === "memory_bytes" && !fits(row) ? `${memoryOf(row)}: does not fit` : figureText(name)(value))])],
    rows, { by: result.paths.length + (result.assumed_releases ? 1 : 0), up: !moreIsBetter(result.best.figure), late: (row) => !fits(row),
      mark: (row) => (row === best ? ' class="chosen"' : fits(row) ? "" : ' class="unfit"') });
  element("command").textContent = sweepCommand();
  const refused = [...failed, ...rows.filter((row) => !canBeBuilt(row))];
  if (refused.length === 0) element("failed-section").remove();
  else table("failed", "Points that could not run or cannot be built", [...result.paths.map((path) => [shortPath(path), ([, alike]) => valuesText(alike, path)]),
    ["points", ([, alike]) => alike.length, whole], ["what is said of them", ([line]) => line]], alikeByLine(refused), { by: -1 });
  drawWords();
};
