// The configure functions of all commands, one per file.
#pragma once

#include "sim/cli/command.hpp"

namespace topsim::cli {
Action configure_run(CLI::App& app);
Action configure_topo(CLI::App& app);
Action configure_bench(CLI::App& app);
Action configure_compare(CLI::App& app);
Action configure_sweep(CLI::App& app);
Action configure_plan(CLI::App& app);
Action configure_explain(CLI::App& app);
Action configure_validate(CLI::App& app);
Action configure_calibrate(CLI::App& app);
Action configure_trace(CLI::App& app);
Action configure_list(CLI::App& app);
Action configure_schema(CLI::App& app);
Action configure_doctor(CLI::App& app);
Action configure_completion(CLI::App& app);
Action configure_man(CLI::App& app);
}  // namespace topsim::cli
