#include "sim/scenario/read/schema.hpp"

#include <iostream>
#include <memory>

#include "sim/base/suggest.hpp"
#include "sim/cli/commands.hpp"
#include "sim/cli/declare.hpp"
#include "sim/scenario/scenario.hpp"

namespace topsim::cli {
Action configure_schema(CLI::App& app) {
  const auto name = std::make_shared<std::string>("scenario");
  const std::vector<std::string> names = scenario::schema_names();
  std::string kinds;
  for (const std::string& known : names) kinds += (kinds.empty() ? "" : "|") + known;
  add_option(app, "name", *name, "Which part (default: scenario)").type_name(kinds);
  return [name] {
    std::cout << scenario::schema(*name);
    return kOk;
  };
}
}  // namespace topsim::cli
