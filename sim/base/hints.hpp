// What to write in place of a key or a value that people know from other programs and that has no one word
// here.
#pragma once

#include <cstddef>
#include <string_view>

namespace topsim {

// Of a key in an object ("lora", "alpha"); empty where there is none.
[[nodiscard]] std::string_view hint_of_key(std::string_view object, std::string_view key);
// Of a value of a key ("framework", "vllm"); empty where there is none.
[[nodiscard]] std::string_view hint_of_value(std::string_view key, std::string_view value);
// As word processors and web pages write quotes.
[[nodiscard]] bool curly_quote_at(std::string_view text, std::size_t position);
}  // namespace topsim
