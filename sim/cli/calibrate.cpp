// topsim calibrate: measures with the packet model what the flow model uses.
#include "sim/network/packet/calibrate.hpp"

#include <iostream>
#include <memory>

#include "sim/base/error.hpp"
#include "sim/cli/commands.hpp"
#include "sim/cli/declare.hpp"
#include "sim/cli/output_format.hpp"
#include "sim/scenario/cluster/calibration.hpp"

namespace topsim::cli {
namespace {

struct Options {
  std::string format = "table";
  int seeds = 5;
  bool quick = false;
};

int run(const Options& options) {
  check_format(options.format, kTableJson);
  if (options.seeds < 1) throw ConfigError("--seeds must be at least 1", "--seeds 5");
  network::packet::CalibrationOptions how;
  how.seeds = options.seeds;
  how.quick = options.quick;
  const network::CongestionTable table(network::packet::calibrate(how));
  std::cout << (options.format == "json" ? scenario::congestion_json(table)
                                         : scenario::congestion_text(table))
            << std::flush;
  return kOk;
}
}  // namespace

Action configure_calibrate(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  add_option(app, "--seeds", options->seeds, "Runs per entry (default 5); median, least and most are kept")
      .type_name("N");
  add_flag(app, "--quick", options->quick, "A few entries only");
  add_format_option(app, options->format, kTableJson, "json is the committed file");
  return [options] { return run(*options); };
}
}  // namespace topsim::cli
