#include "topology/import/encoding.hpp"

#include "sim/base/error.hpp"

namespace topsim::topology {

bool is_utf16(std::string_view text) {
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) return true;
  return text.size() > 3 && (text[0] == '\0') == (text[2] == '\0') &&
         (text[1] == '\0') == (text[3] == '\0') && (text[0] == '\0') != (text[1] == '\0');
}

void refuse_utf16(std::string_view text, const std::string& file) {
  if (!is_utf16(text)) return;
  throw ConfigError({Problem{{file, 1, 1, 1},
                             {},
                             "the file is UTF-16, as > of Windows PowerShell writes it",
                             {},
                             "convert it: iconv -f UTF-16 -t UTF-8 FILE > NEW, or write it with "
                             "| Out-File -Encoding utf8",
                             {}}});
}
}  // namespace topsim::topology
