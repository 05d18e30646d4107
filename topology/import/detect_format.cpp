#include <algorithm>

#include "topology/import/encoding.hpp"
#include "topology/import/import.hpp"

namespace topsim::topology {

std::string detect_format(std::string_view text) {
  if (is_utf16(text)) {  // the reader names the file and the remedy
    std::string ascii(text);
    const auto no_ascii = [](char c) { return c == 0 || static_cast<unsigned char>(c) > 127; };
    ascii.erase(std::remove_if(ascii.begin(), ascii.end(), no_ascii), ascii.end());
    return detect_format(ascii);
  }
  const auto has = [&](std::string_view word) { return text.find(word) != std::string_view::npos; };
  if (has("<system")) return "nccl";
  if (has("<topology")) return "hwloc";
  if (has("switchguid=") || has("caguid=")) return "ibnet";
  if (has("GPU0") &&
      (has("PIX") || has("PXB") || has("PHB") || has("SYS") || has("SOC") || has("NV") || has("NODE")))
    return "smi";
  return {};
}

}  // namespace topsim::topology
