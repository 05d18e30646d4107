// What the page shows: the text of result.json, unchanged, and what was drawn from the run beside it.
const element = (id) => document.getElementById(id);
const result = JSON.parse(element("result").textContent);
const extra = JSON.parse(element("extra").textContent);
const pages = {};  // by kind: draws it
const foot = (run, more) => {
  element("foot").textContent = `topsim ${run.topsim.version} (${run.topsim.commit})${more}. Charts: Apache ECharts.`;
};
const hash = () => new URLSearchParams(location.hash.slice(1));

// The class of a rank: runs of (first rank, class).
const classOfRank = (rank) => {
  const runs = extra.picture ? extra.picture.rank_classes : [];
  let found = -1;
  for (let i = 0; i < runs.length && runs[i] <= rank; i += 2) found = runs[i + 1];
  return rank < result.accelerators.count ? found : -1;
};

// Columns of four integers -> cells in seconds. Cells of one place are stacked: `low` is where a share begins.
const cellsOf = (track) => {
  const cells = [];
  let begin = 0, low = 0;
  for (let i = 0; i < track.cells.length; i += 4) {
    const [advance, length, state, share] = track.cells.slice(i, i + 4);
    begin += advance;
    low = advance === 0 && i > 0 && low < 1 ? low : 0;
    cells.push({ begin: begin * 1e-9, length: length * 1e-9, state, low, share: share / 1000 });
    low += share / 1000;
  }
  return cells;
};
// Totals of a result cover all measured steps: read a step, they compare with the step time.
const measured = result.step?.per_step.length > 0;
const steps = result.step ? Math.max(1, result.step.per_step.length) : 1;
// Calls that a rank takes part in, mean over all: `calls` counts those of every group, and each keeps group_size ranks.
const callsOfARank = (row) => row.calls * row.group_size / result.accelerators.count / steps;
const idleRows = (idle) => Object.entries(idle).filter(([, seconds]) => seconds > 0).sort((a, b) => b[1] - a[1]);
