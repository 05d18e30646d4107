// What channel searches see of NICs whose links do not work: nothing. NCCL passes over ports that are not
// active when a communicator is formed, and looks no more afterwards (transport/net_ib/init.cc).
#pragma once

#include <memory>
#include <span>

#include "sim/collective/collective.hpp"

namespace topsim::collective {
// Of models whose communicators are formed while `dead` links do not work. What was found is shared with
// `known`, whatever its own dead ones. REQUIRES: known is not null.
[[nodiscard]] std::shared_ptr<Searches> searches_without(const std::shared_ptr<Searches>& known,
                                                         std::span<const LinkId> dead);
}  // namespace topsim::collective
