// Where the shipped configurations are, wherever topsim is installed and from whichever folder it is called.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace topsim::scenario {
// In this order: each folder of TOPSIM_CONFIG_PATH (separated by colons), then the first "configs" with a
// "hardware" folder at or above the executable, or above this library (a Python module): PREFIX/share/topsim
// when installed, the source tree when not.
[[nodiscard]] std::vector<std::string> config_directories();
// Those that hold hardware/: the layers of a catalogue.
[[nodiscard]] std::vector<std::string> catalogue_layers(std::span<const std::string> directories);
}  // namespace topsim::scenario
