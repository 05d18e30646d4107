#include <charconv>

#include "topology/catalogue/gemm.hpp"

namespace topsim::topology {

Relatives read_relatives(const config::Document& file, const std::map<std::string, std::string>& written,
                         const ById<Accelerator>& accelerators, config::Reader& reader) {
  Relatives relatives;
  const config::Node section = file.root().find("relatives");
  for (const auto& [from, id] : written) {
    const config::Node entry = section.find(from);
    int capability = 0;
    const auto [end, error] = std::from_chars(from.data(), from.data() + from.size(), capability);
    if (error != std::errc() || end != from.data() + from.size() || capability < 0)
      reader.problem_at_key(entry, "relatives stand by the compute capability from which they hold",
                            "write \"90\" for 9.0, \"0\" for the first and for what has none");
    check_known(entry, "accelerator", id, accelerators, reader);
    if (const auto found = accelerators.find(id);
        found != accelerators.end() && !found->second.gemm.contains(kFittedIn))
      reader.problem(entry, "a relative needs \"gemm\" constants fitted in " + std::string(kFittedIn));
    relatives[capability] = id;
  }
  if (!relatives.contains(0))
    reader.problem(section ? section : file.root(),
                   "\"relatives\" needs an entry \"0\": whose GEMM constants the rest takes over");
  return relatives;
}
}  // namespace topsim::topology
