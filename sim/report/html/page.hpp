// Every page topsim writes has one shell: page.html with its style, its scripts and the chart library, packed
// at build time, and one set of sections per kind (run.html, compare.html, sweep.html, validate.html). The
// data is added here, also packed; the result is one file that opens from disk, without a network.
#pragma once

#include <string>
#include <string_view>

namespace topsim::report {

// Whether the build found the chart library.
[[nodiscard]] bool has_page();
// Throws ConfigError, which says how to get the page, where has_page() is false.
void require_page();
// Before a long run: checks that the page can be made and written to `file`; an empty name is ignored.
void check_page(const std::string& file);

struct Page {
  std::string_view kind;          // "run", "compare", "sweep", "validate"
  std::string title;              // of the browser's tab
  std::string_view result;        // JSON text: what --format json prints
  std::string_view extra = "{}";  // JSON text: what is drawn beside it
};
[[nodiscard]] std::string make_page(const Page& page);

// Pages that need only what their command's --format json prints.
[[nodiscard]] std::string validate_html(std::string_view json);
[[nodiscard]] std::string sweep_html(std::string_view json, const std::string& name);
}  // namespace topsim::report
