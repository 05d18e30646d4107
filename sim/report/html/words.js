// What the words mean, for a person who never saw the tool: those that this page uses.
const stepMeanings = {
  prefill: "one batch of prompts through the model, up to the first token of each answer",
  decode: "one round of generation: every request gets its next token",
  trace: "one replay of the trace: it ends when the last rank has done all that was recorded of it",
};
const trained = "one round of training: every accelerator works through its share of the batch, then all weights are updated";
const wordMeanings = [
  [/\bstep\b/i, "step", () => [...new Set(tasks.map((task) => stepMeanings[task] || trained))].join("; or ")],
  [/MFU|FLOPs utilisation/, "model FLOPs utilisation (MFU)", "the model's own arithmetic per second, as a share of what the accelerators could do at their peak"],
  [/Goodput/, "goodput", "the share of a long run's time that is training: not checkpoints, restarts, or work that is lost and done again"],
  [/exposed/, "exposed", "communication that no computation hides: the accelerator waits for it"],
  [/\bTP\b|tensor parallel/, "TP, tensor parallel", "the matrices of a layer are cut over several accelerators, which exchange results in every layer"],
  [/\bPP\b|pipeline/, "PP, pipeline parallel", "the layers are cut into stages on different accelerators; micro-batches go through them like cars through an assembly line"],
  [/bubble/, "pipeline bubble", "time in which a stage has no micro-batch to work on, while the pipeline fills and drains"],
  [/\bDP\b|data parallel/, "DP, data parallel", () => (generates ? "copies of the model answer different requests" : "copies of the model work on different samples and add up their gradients")],
  [/\bCP\b|context parallel/, "CP, context parallel", "a long sequence is cut over several accelerators"],
  [/\bEP\b|expert parallel/, "EP, expert parallel", "the experts of a mixture of experts live on different accelerators; tokens travel to them"],
  [/collective/i, "collective", "a message that a group exchanges together: all_reduce adds up and gives everyone the sum, all_gather gives everyone all parts, reduce_scatter gives each a part of the sum"],
  [/bus bandwidth|busbw/, "bus bandwidth", "a collective's speed by nccl-tests' definition: comparable with the speed of the slowest link it uses, whatever the number of ranks"],
  [/\brank\b/i, "rank", "one accelerator of the job, counted from 0; ranks that behave alike are shown once, with their number"],
  [/\bleaf\b/, "leaf, spine, core", "the switches of the fabric: a leaf joins nodes, a spine joins leaves, a core joins groups of spines"],
  [/NVSwitch/, "NVSwitch", "the switch inside a node (or rack) that joins its accelerators by NVLink"],
  [/\bNIC\b/, "NIC", "the network card that joins a node to the fabric"],
  [/as [\w ]+ drives it/, null, "the link is not full: the channels and the protocol that the library of the collectives chooses set the pace on it"],
  [/critical path/i, "critical path", "the longest chain of work and waits from the beginning of the step to its end: shorten it and the step is shorter"],
];
const drawWords = () => {
  const text = element("main").innerText + element("headline").textContent;
  if (!wordMeanings.some(([pattern]) => pattern.test(text))) return element("words-section").remove();
  element("words").innerHTML = wordMeanings.filter(([pattern]) => pattern.test(text))
    .map(([pattern, word, meaning]) => `<dt>${word ?? text.match(pattern)[0]}</dt><dd>${typeof meaning === "function" ? meaning() : meaning}.</dd>`).join("");
};
