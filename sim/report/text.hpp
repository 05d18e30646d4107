// Figures as people read them: three significant digits and a unit on every number.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/base/units.hpp"

namespace topsim::report {

// 0.0123, 8.51, 123, 61600 (digits beyond the third are zeros); no exponent.
[[nodiscard]] std::string three_digits(double value);
[[nodiscard]] std::string duration_text(Duration time);  // "8.51 s", "35.1 us"
[[nodiscard]] std::string days_text(double seconds);     // "3.09 h", "21.0 min", for what takes hours
[[nodiscard]] std::string bytes_text(double bytes);      // "30.9 GB"
[[nodiscard]] std::string memory_text(Bytes bytes);      // "57.9 GiB": memory comes in powers of two
[[nodiscard]] std::string message_text(
    Bytes bytes);  // sizes of messages: as chosen ("62.5 MiB"), else as memory
[[nodiscard]] std::string rate_text(double bytes_per_second);            // "47.0 GB/s"
[[nodiscard]] std::string dollars_text(double dollars);                  // "310 000 USD", "0.0123 USD"
[[nodiscard]] std::string percent_text(double share);                    // 0.412 -> "41.2 %"
[[nodiscard]] std::string signed_percent_text(double share);             // "+1.20 %"
[[nodiscard]] std::string count_text(double count);                      // 61634 -> "61 600"
[[nodiscard]] std::string exact_count_text(std::uint64_t count);         // 61634 -> "61 634": parts of a sum
[[nodiscard]] std::string plural(double count, std::string_view thing);  // "1 event", "3 events"

// Columns a text takes on a terminal: UTF-8 code points, all of them one column wide here.
[[nodiscard]] std::size_t width(std::string_view text);
[[nodiscard]] std::string pad_right(std::string_view text, std::size_t columns);
[[nodiscard]] std::string pad_left(std::string_view text, std::size_t columns);
// Shortened in the middle with an ellipsis when too wide.
[[nodiscard]] std::string clip(std::string_view text, std::size_t columns);
[[nodiscard]] std::string clip_end(std::string_view text, std::size_t columns);  // the same at the end
// Broken at spaces into lines of at most `columns`; later lines are indented.
[[nodiscard]] std::vector<std::string> wrap(std::string_view text, std::size_t columns, std::size_t indent);
// "████▌", of at most `columns` columns; `share` of the longest bar.
[[nodiscard]] std::string bar(double share, std::size_t columns);
}  // namespace topsim::report
