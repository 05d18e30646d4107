// What a run was, in words, and what usually shortens its longest wait: nothing that is on already, nothing that its own
// critical path speaks against.
const workload = result.scenario?.workload || {};
const taskNames = { prefill: "Prefilling one batch", decode: "One step of decoding, a token for each request," };
const whatRan = () => (workload.trace ? "The trace" : taskNames[workload.task] || "One training step");

// The link that the critical path waits for most, where it is full; null where latency, the library's pace or nothing limits more.
const fullLink = () => {
  const noLink = /^(computation|host$|latency)|as .* drives it$/, waits = result.critical_path_links.filter((row) => !/^(computation|host$)/.test(row.what));
  const [first] = [...waits].sort((a, b) => b.seconds - a.seconds);
  return first && !noLink.test(first.what) && first.share >= 0.05 ? `a faster link than ${first.what}` : null;
};
const latencyFirst = () => {
  const [first] = result.critical_path_links.filter((row) => !/^(computation|host$)/.test(row.what)).sort((a, b) => b.seconds - a.seconds);
  return first && first.what.startsWith("latency") ? "fewer and larger messages (most of it is latency)" : null;
};
const remediesOf = (reason) => {
  const plan = workload.plan || {}, off = (key) => plan[key] === false || plan[key] === "none", link = fullLink(), latency = latencyFirst();
  if (workload.trace) return [link, latency];
  const all = {
    pipeline_bubble: ["more micro-batches a step", plan.virtual_stages > 1 ? null : "virtual stages", "fewer stages"],
    tensor_parallel: ["a smaller tp", off("tp_overlap") ? "overlap of its collectives with the products (tp_overlap)" : null, latency, link],
    data_parallel: [off("overlap_grad_reduce") ? "overlap_grad_reduce" : null, off("overlap_param_gather") ? "overlap_param_gather" : null, "more tokens a step", link],
    pipeline_transfer: [off("overlap_p2p") ? "overlap_p2p" : null, latency, link],
    context_parallel: ["a smaller cp", latency, link],
    expert_parallel: ["an ep that stays inside a node", latency, link],
    straggler: ["stages and nodes of equal speed: stage_layers, slow_ranks, the placement"],
    host: [workload.compute?.cuda_graph ? null : "CUDA graphs (cuda_graph)", "fewer and larger kernels"],
    offload: ["less offload", "a faster way to host memory"],
  };
  return all[reason] || [];
};
// What kernels lose beside communication, where it is more than every wait: a faster network or room for the collectives helps,
// not more work to hide it behind.
const slowedAdvice = () => result.findings.find((each) => each.path === "accelerators.slowed_seconds")?.remedy;
const adviceFor = (reason) => remediesOf(reason).filter(Boolean).join(", or ");
