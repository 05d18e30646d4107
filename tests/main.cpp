#include <gmock/gmock.h>
#include <stdlib.h>

#include <filesystem>
#include <string>

// Tests run side by side, a process each: every process has a folder of its own for what it writes.
class OwnFolder {
 public:
  OwnFolder() {
    // mkdtemp() replaces the six letters.
    std::string path = (std::filesystem::temp_directory_path() / "topsim-test-XXXXXX").string();
    if (!mkdtemp(path.data())) return;
    path_ = path;
    setenv("TMPDIR", path.c_str(), 1);       // std::filesystem::temp_directory_path()
    setenv("TEST_TMPDIR", path.c_str(), 1);  // testing::TempDir()
  }
  ~OwnFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  OwnFolder(const OwnFolder&) = delete;
  OwnFolder& operator=(const OwnFolder&) = delete;

 private:
  std::filesystem::path path_;
};

int main(int argc, char** argv) {
  // What a person has set must not change what a test sees.
  for (const char* variable : {"TOPSIM_CONFIG_PATH", "COLUMNS", "NO_COLOR", "TERM"}) unsetenv(variable);
  const OwnFolder folder;
  testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
