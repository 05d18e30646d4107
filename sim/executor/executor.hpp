// Executes a folded program on an engine and a network.
//
// Every rank class has FIFO streams. The head of a stream starts once its dependencies are done and the host
// has issued it: the host launches ops in program order at Op::launch each and stops at a host_sync until
// that op is done. Compute runs alone on the accelerator but slows while communication of the same rank holds
// SMs and memory bandwidth. What is limited by memory takes 1 / (1 - x / 0.8) as long, with x = traffic / BW,
// at most a half of 0.8; where kernels fill the memory, blocks that copy get the share of the units that they
// hold, so x = min(traffic / BW, ctas / SM) there, copy engines' part apart. A collective then moves no more
// than BW ctas / SM of the memory's bytes, and the time it loses is added at its end (rank_state.hpp; kernels
// timed beside a ring, tests/golden/accelerator). Grids that were counted (program::Grids) take the waves
// they need on SM - ctas; persistent ones, whose blocks do not all fit, need a second wave
// (compute_state.hpp), and in both the part that their operands take of the memory's time takes 1 / (1 -
// traffic / BW) as long, without holding the collective back; the rest takes SM / (SM - ctas) as long.
// Communication is taken to hold at most half of the SMs and half of the memory bandwidth, however many calls
// run beside the op.
//
// Communication that needs SMs while a kernel runs waits for them (Op::residual, Op::first_kernel), and then
// arrives. A collective starts when its last member has arrived; a message when sender and receiver have both
// arrived (NCCL's receiver posts its buffers only then).
#pragma once

#include "sim/base/error.hpp"
#include "sim/executor/carrier.hpp"
#include "sim/executor/options.hpp"
#include "sim/executor/outcome.hpp"
#include "sim/executor/progress.hpp"
#include "sim/fold/fold.hpp"
#include "sim/program/program.hpp"

namespace topsim::executor {

// Deadlock: no event is left, but the program is not done.
class Blocked : public ConfigError {
  using ConfigError::ConfigError;
};

// Runs warmup + steps steps. Throws ConfigError when the program deadlocks, and names what waits for what.
// `exact_sharing`: the network shares links by max-min fairness and gives a transfer that is alone on its
// links their full rate, so that isolated communicators need not ask it. `progress` may be null; when its
// stop flag rises the outcome so far comes back with complete = false. REQUIRES: `carrier` puts its transfers
// on `network`, whose links are the system's link classes.
[[nodiscard]] Outcome run(const program::Program& program, const fold::System& system,
                          const topology::Topology& topology, network::Network& network, Carrier& carrier,
                          const RunOptions& options, Progress* progress, bool exact_sharing = false);
}  // namespace topsim::executor
