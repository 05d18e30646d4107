// node bundle.mjs OUTPUT: the page with its style and sections in it, and its chart library and scripts packed.
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { deflateSync } from "node:zlib";
import { buildSync, transformSync } from "esbuild";

const kinds = ["run", "compare", "sweep", "validate"];
const scripts = ["text", "data", "charts", "words", "tables", "advice", "goodput", "idle", "topology", "link_series", "timeline", "heat", ...kinds, "main"];
const file = (name) => fileURLToPath(new URL(name, import.meta.url));
const text = (name) => readFileSync(file(name), "utf8");
// Those that can unpack; page.html names them.
const target = ["chrome86", "firefox113", "safari16.4"];
const notices = ["echarts/NOTICE", "echarts/licenses/LICENSE-d3", "zrender/LICENSE"].map((name) => text(`node_modules/${name}`).trim());

const library = buildSync({ entryPoints: [file("library.js")], bundle: true, write: false, minify: true,
  format: "iife", globalName: "echarts", legalComments: "none", target }).outputFiles[0].text;
const own = transformSync(`(() => {\n"use strict";\n${scripts.map((name) => text(`${name}.js`)).join("")}})();`, { minify: true, target }).code;
const parts = {
  STYLE: transformSync(text("page.css"), { loader: "css", minify: true }).code.trim(),
  SECTIONS: kinds.map((kind) => `<template id="sections-${kind}">\n${text(`${kind}.html`)}</template>\n`).join(""),
  NOTICES: ["Packed below: Apache ECharts, Apache License 2.0 (http://www.apache.org/licenses/LICENSE-2.0), and zrender.", ...notices].join("\n\n"),
  CODE: deflateSync(library + own, { level: 9 }).toString("base64"),
};
writeFileSync(process.argv[2], text("page.html").replace(/@TOPSIM_(STYLE|SECTIONS|NOTICES|CODE)@/g, (_, part) => parts[part]));
