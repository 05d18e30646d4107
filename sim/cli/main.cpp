#include "sim/base/heap.hpp"
#include "sim/cli/command.hpp"
#include "sim/cli/interrupt.hpp"

int main(int argc, char** argv) {
  topsim::keep_freed_memory();
  topsim::cli::end_at_interrupts();
  return topsim::cli::run_command_line(argc, argv);
}
