#include "sim/report/html/page.hpp"

#include <zlib.h>

#include <cstdint>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/report/html/page_text.hpp"
#include "sim/report/write.hpp"

namespace topsim::report {
namespace {

std::string base64(const std::vector<unsigned char>& bytes) {
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const auto at = [&](std::size_t k) { return i + k < bytes.size() ? std::uint32_t{bytes[i + k]} : 0U; };
    const std::uint32_t three = at(0) << 16U | at(1) << 8U | at(2);
    for (unsigned place = 0; place < 4; ++place)
      text += place <= bytes.size() - i ? kLetters[three >> (18 - 6 * place) & 63U] : '=';
  }
  return text;
}

// Compresses and encodes in base64: a run's data shrinks to a tenth or less, and base64 never contains the
// end tag of a script element.
std::string packed(std::string_view text) {
  uLongf size = compressBound(text.size());
  std::vector<unsigned char> bytes(size);
  if (compress2(bytes.data(), &size, reinterpret_cast<const Bytef*>(text.data()), text.size(),
                Z_BEST_COMPRESSION) != Z_OK)
    throw InternalError("zlib could not pack the page's data");
  bytes.resize(size);
  return base64(bytes);
}

std::string escaped(std::string_view text) {
  std::string safe;
  for (char letter : text) {
    if (letter == '&') {
      safe += "&amp;";
    } else if (letter == '<') {
      safe += "&lt;";
    } else {
      safe += letter;
    }
  }
  return safe;
}

void fill(std::string& page, std::string_view mark, std::string_view text) {
  const std::size_t at = page.find(mark);
  if (at == std::string::npos) throw InternalError("the page has no place for " + std::string(mark));
  page.replace(at, mark.size(), text);
}
}  // namespace

bool has_page() {
  return !page_text().empty();
}

void require_page() {
  if (has_page()) return;
  throw ConfigError("this build of topsim has no report page: npm could not fetch the chart library",
                    "in the source folder: sh install.sh, or (cd sim/report/html && npm ci) and build again");
}

void check_page(const std::string& file) {
  if (file.empty()) return;
  require_page();
  check_place(file);
}

std::string make_page(const Page& page) {
  require_page();
  std::string text(page_text());
  // From the end to the beginning, so that text already filled in is never searched.
  fill(text, "@TOPSIM_EXTRA@", packed(page.extra));
  fill(text, "@TOPSIM_RESULT@", packed(page.result));
  fill(text, "@TOPSIM_TITLE@", escaped("topsim: " + page.title));
  fill(text, "@TOPSIM_KIND@", page.kind);
  return text;
}

std::string validate_html(std::string_view json) {
  return make_page({"validate", "predicted and published", json});
}

std::string sweep_html(std::string_view json, const std::string& name) {
  return make_page({"sweep", "sweep of " + name, json});
}
}  // namespace topsim::report
