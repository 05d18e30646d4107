// What a run was, in words, and what usually shortens its longest wait: nothing that is on already, that does not fit
// the task, the plan or the memory, or that its own critical path speaks against.
const workload = result.scenario?.workload || {};
// What a step of it is: of a comparison one for each candidate, of a sweep what its points run.
const tasks = result.tasks || [...new Set((extra.results || [result]).map((each) => each.scenario?.workload || {}).map((each) => (each.trace ? "trace" : each.task || "pretrain")))];
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
// The plan with what the framework's release sets where the scenario is silent.
const planInForce = () => ({ ...workload.plan, ...result.left_open?.plan });
const generates = tasks.every((task) => ["prefill", "decode"].includes(task));
const microBatches = (plan) => plan.grad_accumulation ?? plan.global_batch / ((plan.dp ?? 1) * (plan.micro_batch ?? 1));
// Whether the plan still fits with half the tp, cp or pp and twice the dp: what those cut doubles, what dp cuts stays.
const fitsHalved = (plan, dimension) => {
  if (plan[dimension] % 2 !== 0 || microBatches(plan) % 2 !== 0) return false;
  const { parts, capacity_bytes: capacity } = result.memory, of = (name) => parts[name] || 0, zero = plan.zero ?? 0;
  const twice = (name, sharded) => of(name) * (sharded || dimension === "cp" ? 1 : 2);
  const known = ["weights", "gradients", "optimizer", "activations"], others = Object.keys(parts).filter((name) => !known.includes(name));
  return twice("weights", zero >= 3) + twice("gradients", zero >= 2) + twice("optimizer", zero >= 1) +
    of("activations") * (dimension === "pp" ? 1 : 2) + others.reduce((sum, name) => sum + of(name), 0) <= capacity;
};
// Accelerators of a node; unknown without a drawing.
const nodeSize = () => {
  const { nodes, devices } = extra.picture || { nodes: [], devices: [] };
  return Math.max(0, ...nodes.map((node, n) => devices.filter((each) => each.node === n && each.kind === "accelerator").reduce((sum, each) => sum + each.count, 0) / node.count)) || Infinity;
};
// Where the run found that this plan leaves them out and could have them.
const userBuffers = () => {
  const found = result.findings.find((each) => each.assumed?.includes("workload.plan.tp_overlap"));
  if (!found) return null;
  return found.message.includes("compute.cuda_graph") ? "user buffers with CUDA graphs (tp_overlap=userbuffers, compute.cuda_graph=true)" : "user buffers (tp_overlap=userbuffers)";
};
// Where the schedule alone makes the bubble, what of a shorter schedule fits; else what the run found to hold stages up.
const bubbleRemedies = (plan) => {
  const found = result.findings.find((each) => each.id === "pipeline_bubble");
  if (found && found.path !== "workload.plan.global_batch") return [found.remedy];
  // Fewer stages mean more replicas, whose exchange must stay hidden.
  const fewer = fitsHalved(plan, "pp") && result.accelerators.idle_seconds.data_parallel < 0.05 * result.step.seconds ? "fewer stages" : null;
  if (generates) return [fewer];
  const chunks = plan.virtual_stages ?? 1, layers = workload.model?.layers || Infinity;
  return [
    "more micro-batches a step",
    chunks === 1 && [undefined, "1f1b"].includes(plan.schedule) && microBatches(plan) % plan.pp === 0 && layers >= 2 * plan.pp ? "virtual stages" : null,
    fewer,
  ];
};
const remediesOf = (reason) => {
  const link = fullLink(), latency = workload.task === "decode" ? null : latencyFirst();
  if (workload.trace) return [link, latency];
  // Decoding reads all weights for every token: whatever leaves an accelerator more of them makes the token later.
  const plan = planInForce(), off = (key) => plan[key] === false, smaller = (dimension) => (workload.task !== "decode" && fitsHalved(plan, dimension) ? `a smaller ${dimension}` : null);
  const expertsApart = plan.ep * (plan.etp ?? plan.tp ?? 1) > nodeSize();
  const all = {
    pipeline_bubble: bubbleRemedies(plan),
    tensor_parallel: [userBuffers(), smaller("tp"), latency, link],
    data_parallel: [off("overlap_grad_reduce") ? "overlap_grad_reduce" : null,
      // With one chunk a stage the gathers of later stages would begin later.
      off("overlap_param_gather") && plan.zero >= 1 && ((plan.pp ?? 1) === 1 || plan.virtual_stages > 1) ? "overlap_param_gather" : null, "more tokens a step", link],
    pipeline_transfer: [off("overlap_p2p") && plan.virtual_stages > 1 ? "overlap_p2p" : null, latency, link],
    context_parallel: [smaller("cp"), latency, link],
    expert_parallel: [expertsApart ? "an ep that stays inside a node" : null, latency, link],
    straggler: ["stages and nodes of equal speed: stage_layers, slow_ranks, the placement"],
    host: [result.left_open?.compute?.cuda_graph ?? workload.compute?.cuda_graph ? null : "CUDA graphs (cuda_graph)", "fewer and larger kernels"],
    offload: ["less offload", "a faster way to host memory"],
  };
  return all[reason] || [];
};
// What kernels lose beside communication, where it is more than every wait: a faster network or room for the collectives helps,
// not more work to hide it behind.
const slowedAdvice = () => result.findings.find((each) => each.path === "accelerators.slowed_seconds")?.remedy;
const adviceFor = (reason) => remediesOf(reason).filter(Boolean).join(", or ");
