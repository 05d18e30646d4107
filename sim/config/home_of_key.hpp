// Where in a document a key belongs that a user wrote into the wrong object.
#pragma once

#include <string>
#include <string_view>

#include "sim/config/codec.hpp"

namespace topsim::config {

// The shortest path of `root`'s schema that ends in the key, or else in what other programs call by that
// name: "workload.plan.tp" for "tp" and "tensor_parallel". Empty: there is none. Elements of lists are not
// searched.
[[nodiscard]] std::string home_of_key(std::string_view key, const Value& root, Definitions& definitions);

template <class T>
[[nodiscard]] std::string home_of_key(std::string_view key) {
  Definitions definitions;
  const Value root = codec_for<T>()->schema(definitions);
  return home_of_key(key, root, definitions);
}
}  // namespace topsim::config
