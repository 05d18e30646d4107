// Channel searches do not see NICs whose links do not work. NCCL ignores ports that are not active when a
// communicator is formed, and does not look again (transport/net_ib/init.cc).
#pragma once

#include <memory>
#include <span>

#include "sim/collective/collective.hpp"

namespace topsim::collective {
// For models whose communicators are formed while `dead` links do not work. Results are shared with `known`,
// whatever its own dead links. REQUIRES: known is not null.
[[nodiscard]] std::shared_ptr<Searches> searches_without(const std::shared_ptr<Searches>& known,
                                                         std::span<const LinkId> dead);
}  // namespace topsim::collective
