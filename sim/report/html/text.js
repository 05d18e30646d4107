// Thousands apart as on the program's own screens: 124 000.
const grouped = (value) => String(value).replace(/\B(?=(\d{3})+$)/g, "\u00a0");
// As the program's own tables have them: 0.000147, 1.20, 45.0, 1230.
const threeDigits = (value) => {
  if (value === 0) return "0";
  const [, exponent] = value.toExponential(2).split("e");
  return Number(value.toExponential(2)).toFixed(Math.max(0, 2 - exponent));
};
// Numbers as people read them, a unit on each: three significant digits, and all before the point.
const digits = (value) => {
  const size = Math.abs(value);
  return size >= 9.995e5 ? grouped(Math.round(value)) : size >= 99.95 ? value.toFixed(0) : threeDigits(value);
};
const scaled = (value, steps, unit) => {
  for (const [factor, prefix] of steps) {
    if (Math.abs(value) >= factor * 0.9995) return [digits(value / factor), prefix + unit];
  }
  const [factor, prefix] = steps[steps.length - 1];
  return [digits(value / factor), prefix + unit];
};
const metric = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]];
const binary = [[2 ** 40, "Ti"], [2 ** 30, "Gi"], [2 ** 20, "Mi"], [2 ** 10, "Ki"], [1, ""]];
const durationParts = (seconds) => scaled(seconds, [[1, ""], [1e-3, "m"], [1e-6, "µ"], [1e-9, "n"], [1e-12, "p"]], "s");
// Three digits: 124 000.
const count = (value) => (value < 1000 ? digits(value) : grouped(+value.toPrecision(3)));
const countParts = (value) => (value < 1e4 ? [digits(value), ""] : scaled(value, metric, ""));
const duration = (seconds) => (seconds === 0 ? "0 s" : durationParts(seconds).join(" "));
// An instant on a scale of `longest` with marks every `step`: in one unit, with as many decimals as tell marks apart.
const instant = (seconds, step, longest) => {
  const [unit, name] = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]].find(([size]) => longest >= size) || [1e-12, "ps"];
  return `${(seconds / unit).toFixed(Math.max(0, Math.ceil(-Math.log10(step / unit) - 1e-9)))} ${name}`;
};
const bytes = (value) => scaled(value, metric, "B").join(" ");
const memoryText = (value) => scaled(value, binary, "B").join(" ");
const rate = (value) => scaled(value, metric, "B/s").join(" ");
const percent = (share) => {
  const value = share * 100;
  return (value === 0 ? "0" : value < 0.01 ? "< 0.01" : value < 9.995 ? value.toFixed(2) : value.toFixed(1)) + " %";
};
const whole = grouped;
const plural = (count, noun) => `${whole(count)} ${noun}${count === 1 ? "" : /(s|x|ch|sh)$/.test(noun) ? "es" : "s"}`;
// A name as a file may have it and a shell takes it without quotes.
const fileName = (text) => text.replace(/[^\w.=+-]+/g, "-").replace(/^-+|-+$/g, "") || "scenario";
// A word of a command: in quotes where a shell would take it apart.
const quoted = (text) => (/^[\w.,=+/-]+$/.test(text) ? text : `'${text.replace(/'/g, "'\\''")}'`);
const escapeText = (text) => String(text).replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);

const reasonNames = {
  pipeline_bubble: "pipeline bubble", tensor_parallel: "exposed tensor parallel", data_parallel: "exposed data parallel",
  pipeline_transfer: "exposed pipeline transfer", context_parallel: "exposed context parallel",
  expert_parallel: "exposed expert parallel", straggler: "waiting for the slowest", host: "host and launch",
  offload: "offload", other: "other idle",
};
const reasonMeanings = {
  pipeline_bubble: "no work of the pipeline's schedule is ready",
  tensor_parallel: "tensor-parallel collectives that no computation hides",
  data_parallel: "gradient and parameter exchange that no computation hides",
  pipeline_transfer: "activations on their way between pipeline stages",
  context_parallel: "attention's exchange along the sequence that no computation hides",
  expert_parallel: "tokens on their way to and from experts",
  straggler: "waiting inside a collective for its last member",
  host: "the host has not launched the work yet",
  offload: "data on its way to or from host memory or disk",
  other: "idle for another reason",
};
const stateName = (state) => reasonNames[state] || state.replace(/_/g, " ");
// A replayed trace has messages and ranks, and neither pipelines nor stages.
const speakOfATrace = () => {
  Object.assign(reasonNames, { pipeline_transfer: "exposed messages", straggler: "other ranks' part", other: "collectives and other" });
  Object.assign(reasonMeanings, { pipeline_transfer: "messages from one accelerator to another", straggler: "only other ranks have work in the trace, or the last member of a collective is late",
    other: "collectives, whose groups have no dimension of a plan, and idle for another reason" });
};
// The ends of a name tell it from its neighbours: what is too much is left out of the middle.
const middleCut = (text, most) => (text.length <= most ? text : `${text.slice(0, Math.ceil((most - 1) / 2))}…${text.slice(text.length - Math.floor((most - 1) / 2))}`);
// Text as HTML in which no name is broken at its hyphens.
const wholeNames = (text) => escapeText(text).replace(/[\w.=]+(?:-[\w.=]+)+/g, (name) => (name.length > 28 ? name : `<span class="figure">${name}</span>`));
// Text as HTML in which no line ends between a number and its unit.
const unbroken = (text) => escapeText(text).replace(/\d[\d.]* (?:%|[A-Za-zµ/]+)/g, '<span class="figure">$&</span>');
