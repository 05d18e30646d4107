// Errors by whose mistake they are: ConfigError is the user's (place, what was expected, a remedy; exit 2),
// InternalError is ours (exit 70). Assertions never fire on user input.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

namespace topsim {

struct Place {
  std::string file;
  int line = 0;    // from 1; 0: no place inside the file
  int column = 0;  // from 1
  int length = 1;  // characters to underline
};

struct Problem {
  Place place;
  std::string path;         // JSON path, e.g. topology.links[2].bandwith
  std::string message;      // one sentence, no full stop
  std::string label;        // beside the underline: did you mean "bandwidth"?
  std::string help;         // the "= ..." line: the remedy or the known names
  std::string source_line;  // the text of the line, for the picture
};

class ConfigError : public std::runtime_error {
 public:
  explicit ConfigError(std::vector<Problem> problems);
  explicit ConfigError(std::string message, std::string help = {});
  [[nodiscard]] const std::vector<Problem>& problems() const { return problems_; }

 private:
  std::vector<Problem> problems_;
};

class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};
}  // namespace topsim
