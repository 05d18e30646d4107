// Collects all problems found while reading; nothing is thrown before the end.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/config/document.hpp"

namespace topsim::config {

// Named documents that a file may refer to: configs/models/llama3-70b.json is ("models", "llama3-70b").
class Library {
 public:
  explicit Library(std::vector<std::string> directories) : directories_(std::move(directories)) {}
  [[nodiscard]] std::vector<std::string> names(std::string_view category) const;  // sorted
  // Path of the document, empty when no directory has it.
  [[nodiscard]] std::string find(std::string_view category, std::string_view name) const;
  [[nodiscard]] const std::vector<std::string>& directories() const { return directories_; }

 private:
  std::vector<std::string> directories_;  // first hit wins
};

class Reader {
 public:
  explicit Reader(const Library* library = nullptr) : library_(library) {}
  // Underlines the value; `label` stands beside the underline, `help` on the "= ..." line.
  void problem(const Node& at, std::string message, std::string label = {}, std::string help = {});
  // Underlines the key.
  void problem_at_key(const Node& at, std::string message, std::string label = {}, std::string help = {});
  // An unknown name among known ones: closest and list. what = "link", "model", ...
  void unknown_name(const Node& at, std::string_view what, std::string_view name,
                    const std::vector<std::string>& known);
  void add(const ConfigError& error);
  [[nodiscard]] bool ok() const { return problems_.empty(); }
  [[nodiscard]] std::size_t count() const { return problems_.size(); }
  // Throws ConfigError with all problems, in the order of the file, when there are any.
  void finish() const;
  [[nodiscard]] const Library* library() const { return library_; }
  // Keeps a document that was read on the way alive as long as the reader.
  Node keep(Document document);
  // Documents being read, so that one that refers to itself is found out: enter() is false then.
  bool enter(const std::string& document);
  void leave() { open_.pop_back(); }
  // Says where in the user's document a key belongs that stands in the wrong object; empty: nowhere, or a
  // library's document is being read. Asked only when a key is unknown (home_of_key.hpp).
  using Home = std::function<std::string(std::string_view)>;
  void set_home(Home home) { home_ = std::move(home); }
  [[nodiscard]] std::string home_of(std::string_view key) const {
    return home_ && open_.empty() ? home_(key) : std::string();
  }

 private:
  std::vector<Problem> problems_;
  const Library* library_;
  std::vector<std::unique_ptr<Document>> kept_;
  std::vector<std::string> open_;
  Home home_;
};

// Problems as a user sees them; tests/errors/cases hold examples. At most `most` problems, then "and 7 more".
[[nodiscard]] std::string picture(const std::vector<Problem>& problems, bool colour = false,
                                  std::size_t most = 10);
}  // namespace topsim::config
