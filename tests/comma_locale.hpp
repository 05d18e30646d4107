// A process whose C library writes 1.5 as "1,5", as after Python's locale.setlocale(locale.LC_ALL,
// "de_DE.UTF-8").
#pragma once

#include <gtest/gtest.h>

#include <clocale>
#include <cstdlib>
#include <fstream>
#include <string>

namespace topsim::test {

// Holds while it lives. It is made on the spot, since machines that test have few locales.
class CommaLocale {
 public:
  CommaLocale() {
    const std::string folder = testing::TempDir(), source = folder + "/commas.source";
    std::ofstream(source) << "LC_NUMERIC\ndecimal_point \",\"\nthousands_sep \".\"\ngrouping 3;3\n"
                             "END LC_NUMERIC\n";
    // It warns of all that is not there, and fails for that.
    const std::string make =
        "localedef -c -i '" + source + "' -f ISO-8859-1 '" + folder + "/commas' > /dev/null 2>&1";
    (void)!std::system(make.c_str());
    setenv("LOCPATH", folder.c_str(), 1);
    holds_ = std::setlocale(LC_NUMERIC, "commas") != nullptr && *std::localeconv()->decimal_point == ',';
  }
  ~CommaLocale() { std::setlocale(LC_NUMERIC, "C"); }
  CommaLocale(const CommaLocale&) = delete;
  CommaLocale& operator=(const CommaLocale&) = delete;
  [[nodiscard]] bool holds() const { return holds_; }

 private:
  bool holds_ = false;
};
}  // namespace topsim::test
