// A name that stands where an entry of another kind belongs: a link as the fabric, an accelerator as the
// node.
#pragma once

#include <string>
#include <string_view>

#include "topology/catalogue/impl.hpp"

namespace topsim::topology {

// What the entry called `id` is, and how the scenario says it; empty if there is no such entry. `what` was
// expected: "fabric", "node", "link", "switch", "NIC", "accelerator".
[[nodiscard]] std::string other_kind_of(Catalogue::Impl& catalogue, std::string_view what,
                                        std::string_view id);
}  // namespace topsim::topology
