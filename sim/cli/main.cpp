#include "sim/cli/command.hpp"

int main(int argc, char** argv) {
  return topsim::cli::run_command_line(argc, argv);
}
