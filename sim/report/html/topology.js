// The cluster in columns, accelerators on the left, the fabric's top on the right. Alike devices are one
// shape with a count; a box is one kind of node.
const columnOf = (device) =>
  ({ accelerator: 0, nvswitch: 1, "pcie-switch": 2, cpu: 3, "host-memory": 3, storage: 3, nic: 4 })[device.kind] ?? 4 + Math.max(1, device.tier);
const columnNames = ["accelerators", "NVSwitch", "PCIe", "CPU, memory", "NICs", "leaf", "spine", "core"];
const deviceName = (device) =>
  ({ accelerator: "GPU", nvswitch: "NVSwitch", "pcie-switch": "PCIe", cpu: "CPU", "host-memory": "memory", storage: "storage", nic: "NIC" })[device.kind] ||
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
  picture.nodes.forEach((node, n) => {
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
const linkText = (link) => `${plural(link.count, "link")} like ${escapeText(link.id)}<br>` +
  `mean ${percent(link.utilization)}${link.count > 1 ? ` (busiest ${percent(link.most)})` : ""}, peak ${percent(link.peak)}; ` +
  `${bytes(link.bytes / link.count)} each of ${bits(link.capacity)}`;
const showDetails = (title, rows) => {
  element("details").innerHTML = `<dl><dt>chosen</dt><dd><b>${escapeText(title)}</b></dd>` +
    rows.map(([key, value]) => `<dt>${escapeText(key)}</dt><dd>${value}</dd>`).join("") + "</dl>";
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
    (picture.left_out ? "Host processors, memory and disks carried nothing and are left out. " : "") +
    "Lines: width is speed, colour is the busier direction's use. Point or click for numbers; drag to move, Ctrl and scroll to zoom.";
  const option = () => ({
    grid: { left: 8, right: 8, top: 40, bottom: 8 },
    tooltip: tooltip({ formatter: (p) => p.data.text }),
    visualMap: { type: "continuous", min: 0, max: 1, calculable: false, orient: "horizontal", right: 4, top: 0, itemWidth: 11, itemHeight: 130,
      text: ["100 %", "0 %"], textStyle: { color: scheme.soft }, inRange: { color: scheme.ramp }, seriesIndex: 9, hoverLink: false },
    xAxis: { type: "value", min: -0.55, max: columns.length - 0.45, show: false },
    yAxis: { type: "value", min: -0.45, max: height + 0.1, inverse: true, show: false },
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
        const [x, y] = api.coord(at[params.dataIndex]), gpu = picture.devices[params.dataIndex].kind === "accelerator";
        return { type: "rect", shape: { x: x - 61, y: y - 18, width: 122, height: 36, r: 7 },
          style: { fill: scheme.panel, stroke: gpu ? busyColour : scheme.soft, lineWidth: gpu ? 2 : 1 } };
      },
    }, {
      type: "custom", z: 3, data: loops.map((line) => ({ value: at[line[0].from], text: textOf(line), line })),
      renderItem: (params, api) => {  // links among the members of one shape
        const line = loops[params.dataIndex], [x, y] = api.coord(at[line[0].from]), reach = 26 + 12 * loops.slice(0, params.dataIndex).filter((other) => other[0].from === line[0].from).length;
        return { type: "bezierCurve", shape: { x1: x - 61, y1: y - 11, x2: x - 61, y2: y + 11, cpx1: x - 61 - reach, cpy1: y - 20, cpx2: x - 61 - reach, cpy2: y + 20 },
          style: { stroke: styleOf(line).color, lineWidth: styleOf(line).width, fill: "none", lineDash: of(line) > 0 ? null : [5, 4] } };
      },
    }, {
      type: "graph", coordinateSystem: "cartesian2d", z: 2, symbol: "rect", emphasis: { focus: "adjacency", lineStyle: { width: 7 }, itemStyle: { color: scheme.panel } },
      data: picture.devices.map((device, i) => ({
        name: String(i), value: at[i], symbolSize: [118, 32],
        itemStyle: { color: scheme.panel },
        label: { show: true, color: scheme.ink, fontSize: 12, lineHeight: 14,
          formatter: `{b|${deviceName(device)} × ${whole(device.count)}}\n{s|${device.name}}`,
          rich: { b: { fontWeight: 600, fontSize: 12.5 }, s: { color: scheme.soft, fontSize: 10.5 } } },
        text: `<b>${escapeText(device.name)}</b>${device.count > 1 ? ` and ${whole(device.count - 1)} alike` : ""}<br>${escapeText(device.model)}` +
          (device.rank >= 0 ? `<br>rank ${device.rank}` : device.kind === "accelerator" ? "<br>not part of the job" : ""),
      })),
      links: between.map((line) => ({
        source: String(line[0].from), target: String(line[0].to),
        lineStyle: { ...styleOf(line), type: of(line) > 0 ? "solid" : "dashed",
          curveness: Math.abs(at[line[0].from][0] - at[line[0].to][0]) === 1 ? 0 : 0.22 },
        text: textOf(line), line,
      })),
    }],
  });
  const chart = draw("topology", Math.min(2400, Math.max(230, (height + 0.6) * 58 + 60)), option);
  chart.on("click", (p) => {
    if (p.dataType === "node") return showDetails(picture.devices[+p.name].name, [["what", p.data.text]]);
    const line = p.data.line;
    showDetails(line[0].type, line.map((link) => [link.id, linkText(link)]));
  });
  const tools = element("cluster-tools");
  for (const [key, text] of [["utilization", "mean use"], ["peak", "highest instant"]]) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = text;
    button.setAttribute("aria-pressed", key === colourBy);
    button.onclick = () => {
      colourBy = key;
      for (const other of tools.children) other.setAttribute("aria-pressed", other === button);
      chart.setOption(option());
    };
    tools.append(button);
  }
};
