// From a trace to a program.
//
// Compute nodes of one processor run one after the other; the accelerator is busy while any processor of its
// rank computes. Communication slows only processor 0, whose kernels share the accelerator with it.
// Collectives run in the order of their group, messages between two ranks in the order of their tag;
// everything else only by its dependencies. Nodes are issued in topological order, the first in the file
// first. Collectives of 0 bytes are left out, as NCCL leaves them out; a message of 0 bytes takes its
// latency.
//
// Receives are posted ahead: a message travels as soon as its send begins, and a receive ends when it has
// arrived and what the receive waits for has ended. A send of up to 65,535 bytes ends at once, as in
// LogGOPSim, a larger one when it has arrived; so in every format, that a converted trace takes as long. A
// receive from any rank takes what is left over, in the order of the senders. A message without a receive
// still travels.
#pragma once

#include "topology/catalogue.hpp"
#include "workloads/trace/trace.hpp"

namespace topsim::workloads::trace {

// `accelerator` times compute nodes that have operations and no duration: the longer of operations over its
// dense 16-bit rate and operands over its memory bandwidth. Throws ConfigError for a trace that cannot end: a
// cycle of dependencies, a receive without a send, members that call a group differently.
[[nodiscard]] program::Program to_program(const Trace& trace, const topology::Accelerator& accelerator);
// Throws ConfigError where nodes of a rank wait for each other in a cycle.
void require_an_end(const Trace& trace);
}  // namespace topsim::workloads::trace
