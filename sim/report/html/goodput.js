// What failures and checkpoints leave of a run of days, where the scenario asks for it (its section reliability).
const longTime = (seconds) => {
  const [unit, name] = [[86400, "days"], [3600, "h"], [60, "min"]].find(([unit, name]) => seconds >= (name === "days" ? 2 : 1) * unit) || [1, "s"];
  return `${digits(seconds / unit)} ${name}`;
};
const everyDay = (perDay) => (perDay > 0 ? `every ${longTime(86400 / perDay)}` : "never");
// A figure with the range of what was published about it; one figure where all agree.
const withRange = ({ low, usual, high }, text) => (text(low) === text(high) ? text(usual) : `${text(usual)} (${text(low)} to ${text(high)})`);
const goodputNote = ({ interruptions_per_day: stops, known_losses: losses, checkpoint_interval_seconds: interval }) =>
  `stops ${everyDay(stops.usual)}${losses > 0 ? ` + ${losses}` : ""}, checkpoints every ${longTime(interval)}`;

const drawGoodput = () => {
  const of = result.reliability;
  if (!of) return element("failures").remove();
  const { goodput, interruptions_per_day: stops, sources } = of;
  element("failures-hint").innerHTML = unbroken(
    `Of ${plural(of.days, "day")}, ${withRange(goodput, percent)} ${stops.usual > 0 || of.known_losses > 0 ? "are training; the rest is checkpoints, restarts and work that is done again" : "are training; the rest is checkpoints"}. ` +
    `The job stops ${everyDay(stops.usual)}${stops.low < stops.high ? `: by published rates every ${longTime(86400 / stops.high)} to ${stops.low > 0 ? longTime(86400 / stops.low) : "never"}` : ""}` +
    `${of.known_losses > 0 ? `, and ${plural(of.known_losses, "time")} because the scenario's faults take an accelerator away` : ""}. ` +
    `A checkpoint every ${longTime(of.checkpoint_interval_seconds)} is ${of.checkpoint_interval_is_optimum ? "the optimum by Daly's formula" : "what the scenario says"}. Arithmetic on the simulated step, not a simulation.`);
  table("failure-sources", "What ends the job", [
    ["what fails", (row) => row.id.replace(/-/g, " ").replace(/^nic$/, "NIC")], ["how many", (row) => row.count, whole], ["counted", (row) => row.counted],
    ["failures of one a year", (row) => row.per_year.usual, (value, row) => withRange(row.per_year, threeDigits)],
    ["stops of the job a year", (row) => row.count * row.per_year.usual, (value, row) => withRange(row.per_year, (each) => threeDigits(row.count * each))],
  ], sources, { by: 4 });
};
