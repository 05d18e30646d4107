// The cluster in columns, accelerators on the left, the fabric's top on the right. Alike devices are one
// shape with a count; a box is one kind of node.
const columnOf = (device) =>
  ({ accelerator: 0, nvswitch: 1, "pcie-switch": 2, cpu: 3, "host-memory": 3, storage: 3, nic: 4 })[device.kind] ?? 4 + Math.max(1, device.tier);
const columnNames = ["accelerators", "NVSwitch", "PCIe", "CPU, memory", "NICs", "leaf", "spine", "core"];
// A box has no room for "accelerator".
const calledShortly = () => (/^accelerator$/.test(result.accelerators.called ?? "accelerator") ? "chip" : result.accelerators.called);
const deviceName = (device) =>
  ({ accelerator: calledShortly(), nvswitch: "NVSwitch", "pcie-switch": "PCIe", cpu: "CPU", "host-memory": "memory", storage: "storage", nic: "NIC" })[device.kind] ||
  columnNames[Math.min(7, columnOf(device))];
let colourBy = "utilization";

// Host processors, memory and disks that carried nothing are left out: most runs never touch them.
const drawnPart = (picture) => {
  const carries = new Set(picture.links.filter((link) => link.bytes > 0).flatMap((link) => [link.from, link.to]));
  const host = (i) => !carries.has(i) && /^(cpu|host-memory|storage)$/.test(picture.devices[i].kind);
  const cabled = new Set(picture.links.filter((link) => !host(link.from) && !host(link.to)).flatMap((link) => [link.from, link.to]));
  const kept = picture.devices.map((_, i) => i).filter((i) => cabled.has(i) || picture.devices[i].kind === "accelerator");
  const place = new Map(kept.map((old, now) => [old, now]));
  return {
    ...picture, devices: kept.map((i) => picture.devices[i]), left_out: kept.length < picture.devices.length,
    links: picture.links.filter((link) => place.has(link.from) && place.has(link.to))
      .map((link) => ({ ...link, from: place.get(link.from), to: place.get(link.to) })),
  };
};
// Both directions between two shapes are one line.
const linesOf = (picture) => {
  const lines = new Map();
  for (const link of picture.links) {
    const key = [Math.min(link.from, link.to), Math.max(link.from, link.to), link.type].join(" ");
    if (!lines.has(key)) lines.set(key, []);
    lines.get(key).push(link);
  }
  return [...lines.values()];
};
const layoutOf = (picture) => {
  const columns = [...new Set(picture.devices.map(columnOf))].sort((a, b) => a - b);
  const at = new Array(picture.devices.length), boxes = [];
  let top = 0;
  const place = (members, from, height) => {
    for (const column of columns) {
      const here = members.filter((i) => columnOf(picture.devices[i]) === column);
      here.forEach((i, k) => { at[i] = [columns.indexOf(column), from + (k + 0.5) * height / here.length]; });
    }
  };
  const tallest = (members) => Math.max(1, ...columns.map((column) => members.filter((i) => columnOf(picture.devices[i]) === column).length));
  const indices = picture.devices.map((_, i) => i);
  // Kinds of nodes that share a switch lie together: fewer lines cross.
  const joined = picture.nodes.map((_, n) => Math.min(...picture.links.flatMap((link) => [[link.from, link.to], [link.to, link.from]])
    .filter(([a, b]) => picture.devices[a].node === n && picture.devices[b].node < 0).map(([, b]) => b)));
  const order = picture.nodes.map((_, n) => n).sort((a, b) => (joined[a] === joined[b] ? a - b : joined[a] - joined[b]));
  order.forEach((n) => {
    const node = picture.nodes[n];
    const members = indices.filter((i) => picture.devices[i].node === n);
    if (members.length === 0) return;
    const height = tallest(members);
    place(members, top, height);
    boxes.push({ top, bottom: top + height, right: Math.max(...members.map((i) => at[i][0])),
      text: `${plural(node.count, "node")}${node.count > 1 ? " like" : ":"} ${node.name}` });
    top += height + 0.65;
  });
  const fabric = indices.filter((i) => picture.devices[i].node < 0);
  const height = Math.max(top - 0.65, tallest(fabric));
  place(fabric, 0, height);
  return { at, boxes, columns, height };
};
// Boxes are as wide as leaves a figure room between two columns; narrower ones have smaller titles.
const leastColumn = 152, figureRoom = 50;
const boxWidth = (width, columns) => Math.max(leastColumn - figureRoom, Math.min(118, Math.floor(width / columns.length) - figureRoom));
// A text and its size so that it fits: smaller letters first, then fewer.
const pen = document.createElement("canvas").getContext("2d");
const fitted = (text, weight, size, room) => {
  const least = 8.5;
  const width = (shown) => { pen.font = `${weight} ${size}px system-ui, "DejaVu Sans", sans-serif`; return pen.measureText(shown).width; };
  const smaller = Math.min(size, Math.floor(2 * size * room / width(text)) / 2);
  if (smaller >= least) return [text, smaller];
  let kept = text.length;
  while (kept > 1 && width(text.slice(0, kept) + "…") * least / size > room) --kept;
  return [text.slice(0, kept) + "…", least];
};
// How much a line that skips columns bows out: the least that keeps it and its figure off the boxes in between.
// `places`: of all boxes, in pixels; the curve is the library's, a quadratic whose middle lies half the bow aside.
const bowOf = ([x1, y1], [x2, y2], places, half) => {
  if (Math.abs(x1 - x2) < 1) return 170 / (y2 - y1);  // in one column: past its boxes on the right
  const boxes = places.filter(([x, y]) => !(x === x1 && y === y1) && !(x === x2 && y === y2));
  const touches = (bow) => {
    const [cx, cy] = [(x1 + x2) / 2 - (y1 - y2) * bow, (y1 + y2) / 2 - (x2 - x1) * bow];
    const at = (t) => [(1 - t) ** 2 * x1 + 2 * t * (1 - t) * cx + t * t * x2, (1 - t) ** 2 * y1 + 2 * t * (1 - t) * cy + t * t * y2];
    const on = ([x, y], wide, high) => boxes.filter((box) => Math.abs(box[0] - x) < half + wide && Math.abs(box[1] - y) < 18 + high).length;
    const [x, y] = at(0.5);
    return 3 * on([x, y - 9], 20, 8) + [0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8].reduce((sum, t) => sum + on(at(t), 2, 3), 0);
  };
  return [0.22, -0.22, 0.32, -0.32, 0.42, -0.42, 0.55, 0.12].map((bow) => [touches(bow), bow]).reduce((best, each) => (each[0] < best[0] ? each : best))[1];
};
const linkText = (link) => `${plural(link.count, "link")} like ${escapeText(link.id)}<br>` +
  `mean ${percent(link.utilization)}${link.count > 1 ? ` (busiest ${percent(link.most)})` : ""}, peak ${percent(link.peak)}; ` +
  `${bytes(link.bytes / link.count / steps)} each a step, usable speed ${rate(link.capacity)}`;
// A single device by its own name, several by what they are.
const titleOf = (device) => (device.count === 1 ? device.name.split("/").pop() : `${deviceName(device)} × ${whole(device.count)}`);
// The scenario's fault that a device or one of its cables has; those are drawn in red with the fault's name.
const faultOf = (device) => (result.scenario?.faults || []).find(({ target }) =>
  typeof target === "string" && target.split(/\s*->\s*/).some((end) => end === device.name));
// How many of a shape a node has, or which switch it is: what the small print of a shape says.
const smallPrint = (picture, device) => {
  const node = device.node >= 0 ? picture.nodes[device.node] : null;
  return node && node.count > 1 ? `${whole(device.count / node.count)} a node, ${device.model}` : device.model || device.name;
};

const drawTopology = () => {
  if (!extra.picture) return missing("cluster", "This run kept no drawing of the cluster: topsim run SCENARIO.json --html FILE does.");
  const picture = drawnPart(extra.picture);
  const lines = linesOf(picture), { at, boxes, columns, height } = layoutOf(picture);
  const of = (line) => Math.max(...line.map((link) => link[colourBy]));
  const styleOf = (line) => ({ color: of(line) > 0 ? colourAt(scheme.ramp, of(line)) : scheme.idle, opacity: of(line) > 0 ? 1 : 0.65,
    width: Math.max(1.5, Math.min(8, 1.5 + 2.2 * Math.log10(line[0].capacity / 5e9))) });
  const textOf = (line) => `<b>${escapeText(line[0].type)}</b><br>` + line.map(linkText).join("<br>");
  const loops = lines.filter((line) => line[0].from === line[0].to), between = lines.filter((line) => line[0].from !== line[0].to);
  const switches = picture.devices.filter((d) => d.kind === "switch").reduce((sum, d) => sum + d.count, 0);
  element("cluster-hint").textContent =
    `${plural(result.accelerators.count, "accelerator")}, ${plural(picture.nodes.reduce((sum, n) => sum + n.count, 0), "node")}, ` +
    `${plural(switches, "fabric switch")}, ${plural(extra.picture.links.reduce((sum, l) => sum + l.count, 0), "directed link")}. ` +
    `What behaves alike is drawn once with its count${picture.exact ? "" : "; to fit, links of one type share a line although their loads differ"}. ` +
    (picture.left_out ? "Host processors, memory and disks that carried nothing are left out. " : "") +
    "Lines: width is speed, colour and figure are the busier direction's use, dashes carried nothing. Point for numbers, click a line for its use over time; drag to move, Ctrl and scroll to zoom.";
  const pixels = (i, width) => [at[i][0] * width / columns.length, at[i][1] * 62];
  // Of many lines only the busiest of each type has room for a figure.
  const busiest = between.filter((line) => of(line) >= 5e-4).sort((a, b) => of(b) - of(a));
  const labelled = new Set(between.length <= 60 ? busiest : busiest.filter((line, i) => busiest.findIndex((other) => other[0].type === line[0].type) === i));
  const labelOf = (device, room) => {
    const fault = faultOf(device), [title, large] = fitted(titleOf(device), 600, 12.5, room);
    const [print, small] = fitted(fault ? `✕ ${fault.kind.replace(/_/g, " ")}` : smallPrint(picture, device), 400, 10.5, room);
    return { show: true, color: scheme.ink, lineHeight: 14, formatter: `{b|${title}}\n{s|${print}}`,
      rich: { b: { fontWeight: 600, fontSize: large }, s: { color: scheme.soft, fontSize: small } } };
  };
  const bowed = (line, width) => (Math.abs(at[line[0].from][0] - at[line[0].to][0]) === 1 ? 0
    : bowOf(pixels(line[0].from, width), pixels(line[0].to, width), picture.devices.map((_, i) => pixels(i, width)), boxWidth(width, columns) / 2));
  // Room above for the lines that bow out, and for their figures.
  const widest = Math.max(1140, columns.length * leastColumn);
  const above = Math.max(0.45, ...between.map((line) => {
    const [[x1, y1], [x2, y2]] = [pixels(line[0].from, widest), pixels(line[0].to, widest)];
    return x1 === x2 ? 0 : ((x2 - x1) * bowed(line, widest) / 2 - (y1 + y2) / 2 + 22) / 62;
  }));
  const option = (width) => { const half = boxWidth(width, columns) / 2; return {
    grid: { left: 8, right: 8, top: 4, bottom: 8 },
    tooltip: tooltip({ formatter: (p) => p.data.text }),
    xAxis: { type: "value", min: -0.55, max: columns.length - 0.45, show: false },
    yAxis: { type: "value", min: -above, max: height + 0.1, inverse: true, show: false },
    dataZoom: [{ type: "inside", xAxisIndex: 0, filterMode: "none", zoomOnMouseWheel: "ctrl" }, { type: "inside", yAxisIndex: 0, filterMode: "none", zoomOnMouseWheel: "ctrl" }],
    series: [{
      type: "custom", silent: true, z: 1, data: boxes.map((box) => [box.top, box.bottom, box.right]),
      renderItem: (params, api) => {
        const box = boxes[params.dataIndex];
        const a = api.coord([-0.5, box.top - 0.36]), b = api.coord([box.right + 0.5, box.bottom + 0.02]);
        return { type: "group", children: [
          { type: "rect", shape: { x: a[0], y: a[1], width: b[0] - a[0], height: b[1] - a[1], r: 10 }, style: { fill: scheme.box, stroke: scheme.line } },
          { type: "text", style: { x: a[0] + 12, y: a[1] + 6, text: box.text, fill: scheme.soft, font: "600 12px sans-serif" } }] };
      },
    }, {
      type: "custom", silent: true, z: 1, data: at,
      renderItem: (params, api) => {
        const device = picture.devices[params.dataIndex], [x, y] = api.coord(at[params.dataIndex]), gpu = device.kind === "accelerator";
        return { type: "rect", shape: { x: x - half, y: y - 18, width: 2 * half, height: 36, r: 7 },
          style: { fill: scheme.panel, stroke: faultOf(device) ? "#d7301f" : gpu ? busyColour : scheme.soft, lineWidth: faultOf(device) || gpu ? 2 : 1 } };
      },
    }, {
      type: "custom", z: 3, data: loops.map((line) => ({ value: at[line[0].from], text: textOf(line), line })),
      renderItem: (params, api) => {  // links among the members of one shape
        const line = loops[params.dataIndex], [x, y] = api.coord(at[line[0].from]), reach = 26 + 12 * loops.slice(0, params.dataIndex).filter((other) => other[0].from === line[0].from).length;
        const curve = { type: "bezierCurve", shape: { x1: x - half, y1: y - 11, x2: x - half, y2: y + 11, cpx1: x - half - reach, cpy1: y - 20, cpx2: x - half - reach, cpy2: y + 20 },
          style: { stroke: styleOf(line).color, lineWidth: styleOf(line).width, fill: "none", lineDash: of(line) > 0 ? null : [5, 4] } };
        const figure = { type: "text", style: { x: x - half, y: y + 19 + 12 * loops.slice(0, params.dataIndex).filter((other) => other[0].from === line[0].from).length,
          text: of(line) >= 5e-4 ? `among them ${percent(of(line))}` : "", fill: scheme.ink, font: "10.5px sans-serif" } };
        return { type: "group", children: [curve, figure] };
      },
    }, {
      type: "graph", coordinateSystem: "cartesian2d", z: 2, symbol: "rect", emphasis: { focus: "adjacency", lineStyle: { width: 7 }, itemStyle: { color: scheme.panel } },
      data: picture.devices.map((device, i) => ({
        name: String(i), value: at[i], symbolSize: [2 * half - 4, 32],
        itemStyle: { color: scheme.panel },
        label: labelOf(device, 2 * half - 8),
        text: `<b>${escapeText(device.name)}</b>${device.count > 1 ? ` and ${whole(device.count - 1)} alike` : ""}<br>${escapeText(device.model)}` +
          (device.rank >= 0 ? `<br>rank ${device.rank}` : device.kind === "accelerator" ? "<br>not part of the job" : ""),
      })),
      links: between.map((line) => ({
        source: String(line[0].from), target: String(line[0].to),
        lineStyle: { ...styleOf(line), type: of(line) > 0 ? "solid" : "dashed",
          curveness: bowed(line, width) },
        label: { show: labelled.has(line), formatter: percent(of(line)), color: scheme.ink, fontSize: 10.5, padding: [1, 3],
          distance: 5,
          backgroundColor: line[0].from < picture.devices.length && picture.devices[line[0].from].node >= 0 && picture.devices[line[0].to].node >= 0 ? scheme.box : scheme.panel },
        text: textOf(line), line,
      })),
    }],
  }; };
  element("topology").style.minWidth = columns.length * leastColumn + "px";
  element("topology").style.setProperty("--on-paper", Math.min(1, paperWidth / (columns.length * leastColumn)));
  scaleOf("topology", () => scheme.ramp);
  const chart = draw("topology", Math.min(2400, Math.max(150, (height + above + 0.15) * 62)), option);
  chart.on("click", (p) => {
    element("series").hidden = true;
    if (p.dataType === "node") return showDetails(picture.devices[+p.name].name, [["what", p.data.text]]);
    const line = p.data.line;
    showLinks(line[0].type, line.map(idOfSeries).filter(Boolean), false,
      line.map((link) => [link.id, linkText(link)]));
  });
  const pressed = (chosen) => { for (const each of element("cluster-tools").children) each.setAttribute("aria-pressed", each === chosen); };
  for (const [key, text] of [["utilization", "mean use"], ["peak", "highest instant"]]) {
    button("cluster-tools", text, key === colourBy, (chosen) => {
      colourBy = key;
      pressed(chosen);
      chart.setOption(option(chart.getWidth()));
    });
  }
};
