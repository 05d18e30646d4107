// configs/calibration/congestion.json: what `topsim calibrate` writes and the flow model reads.
#pragma once

#include <memory>
#include <string>

#include "sim/network/congestion_table.hpp"

namespace topsim::scenario {
// Throws ConfigError with places.
[[nodiscard]] network::CongestionTable read_congestion(const std::string& path);
// That of the first of config_directories() that has one, read once as long as the file stays the same; null
// where none has.
[[nodiscard]] std::shared_ptr<const network::CongestionTable> shipped_congestion();

[[nodiscard]] std::string congestion_json(const network::CongestionTable& table);
[[nodiscard]] std::string congestion_text(const network::CongestionTable& table);
}  // namespace topsim::scenario
