#include "sim/report/html/page.hpp"

#include "sim/base/error.hpp"
#include "sim/report/html/page_text.hpp"
#include "sim/report/write.hpp"

namespace topsim::report {
namespace {

// Inside a script element no text may look like the element's end.
std::string inside_script(std::string_view text) {
  std::string safe;
  safe.reserve(text.size());
  for (char letter : text) {
    if (letter == '<') {
      safe += "\\u003c";
    } else {
      safe += letter;
    }
  }
  return safe;
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
  // From the end to the beginning: what was filled in is never searched.
  fill(text, "@TOPSIM_EXTRA@", inside_script(page.extra));
  fill(text, "@TOPSIM_RESULT@", inside_script(page.result));
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
