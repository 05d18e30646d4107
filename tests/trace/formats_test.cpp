// All formats: broken input, detection by content.

#include <fstream>

#include "tests/trace/fixtures.hpp"

namespace topsim::workloads::trace::formats_test {
// Random truncations and changed bytes give a ConfigError with a message, never anything else.
TEST(Formats, BrokenInputGetsASentence) {
  std::vector<std::pair<std::string, std::function<void(const std::string&)>>> readers;
  readers.emplace_back(kTwo,
                       [](const std::string& t) { (void)to_program(read_goal(t, "f"), accelerator()); });
  readers.emplace_back(kLayers,
                       [](const std::string& t) { (void)to_program(read_aicb(t, "f", 8), accelerator()); });
  readers.emplace_back(kNative,
                       [](const std::string& t) { (void)to_program(read_native(t, "f"), accelerator()); });
  const std::string rank = file_of({node(1, 4, {}, {{"num_ops", 5000000}, {"tensor_size", 2000000}}),
                                    node(2, 7, {1}, {{"comm_type", 2}, {"comm_size", 1000}}, 0, "7"),
                                    node(3, 5, {2}, {{"comm_dst", 0}, {"comm_size", 8}, {"comm_tag", 4}}),
                                    node(4, 6, {2}, {{"comm_src", 0}, {"comm_size", 8}, {"comm_tag", 4}})});
  readers.emplace_back(
      rank, [](const std::string& t) { (void)to_program(chakra({t}, "{\"7\": [0]}"), accelerator()); });
  std::uint64_t state = 88172645463325252ULL;
  const auto below = [&](std::size_t n) {
    state ^= state << 13U, state ^= state >> 7U, state ^= state << 17U;
    return static_cast<std::size_t>(state % n);
  };
  int refused = 0;
  for (const auto& [good, read] : readers) {
    EXPECT_NO_THROW(read(good));
    for (int i = 0; i < 3000; ++i) {
      std::string text = good;
      if (below(3) == 0) text.resize(below(text.size()));
      for (std::size_t changes = below(4); changes > 0 && !text.empty(); --changes) {
        const std::size_t at = below(text.size());
        if (below(2) == 0) text[at] = static_cast<char>(below(256));
        if (below(8) == 0) text.erase(at, 1 + below(20));
        if (below(8) == 0) text.insert(at, text.substr(below(text.size() + 1), below(30)));
      }
      try {
        read(text);
      } catch (const ConfigError& error) {
        ++refused;
        ASSERT_FALSE(error.problems().empty());
        ASSERT_FALSE(error.problems().front().message.empty());
      }
    }
  }
  EXPECT_GT(refused, 6000);
}

TEST(Formats, AreToldByTheirContent) {
  const fs::path folder = fs::temp_directory_path() / "topsim-formats";
  fs::create_directories(folder);
  const auto write = [&](const char* name, const std::string& text) {
    std::ofstream(folder / name, std::ios::binary) << text;
    return (folder / name).string();
  };
  EXPECT_EQ(detect_format(write("a.goal", kTwo)), "goal");
  EXPECT_EQ(detect_format(write("a.txt", kLayers)), "aicb");
  EXPECT_EQ(detect_format(write("a.json", kNative)), "native");
  EXPECT_EQ(detect_format(write("a.0.et", file_of({}))), "chakra");
  EXPECT_THAT(problem_of([&] {
                (void)detect_format(write("b.bin",
                                          "\x7f"
                                          "ELF"));
              }).message,
              HasSubstr("no trace"));
  TraceSpec missing;
  missing.format = "goal", missing.path = "none.goal";
  EXPECT_THAT(problem_of([&] { (void)load(missing, folder.string(), 0); }).message, HasSubstr("cannot read"));
  write("c.0.et", file_of({})), write("c.2.et", file_of({}));
  TraceSpec gap;
  gap.format = "chakra", gap.path = "c";
  EXPECT_THAT(problem_of([&] { (void)load(gap, folder.string(), 0); }).message,
              HasSubstr("the file of rank 1 is missing"));
  fs::remove_all(folder);
}

// What people have of the same run, in JSON and UTF-16.
TEST(Formats, OthersJsonIsNamedWithItsConverter) {
  const fs::path path = fs::temp_directory_path() / "topsim-others.json";
  std::string wide = "\xff\xfe";
  for (const char c : std::string(kTwo)) wide += c, wide += '\0';
  for (const auto& [text, message, help] :
       {std::tuple(std::string(R"({"globalMetadata": {"version": "0.0.4"}, "nodes": []})"),
                   "is Chakra's JSON", "chakra_jsonizer"),
        {R"({"schema": "1.1.1-chakra.0.0.4", "pid": 1, "nodes": []})", "is an execution trace of PyTorch",
         "chakra_converter PyTorch"},
        {R"({"schemaVersion": 1, "traceEvents": []})", "is a trace of PyTorch's profiler",
         "chakra_trace_link"},
        {wide, "UTF-16", "iconv"}}) {
    std::ofstream(path, std::ios::binary) << text;
    TraceSpec spec;
    spec.path = path.string();
    const Problem problem = problem_of([&] { (void)load(spec, {}, 0); });
    EXPECT_THAT(problem.message, HasSubstr(message));
    EXPECT_THAT(problem.help, HasSubstr(help));
  }
  fs::remove(path);
}

// Two ranks, each with a host node and a node of processor 2. What a format cannot express is reported.
TEST(Formats, WhatTheyHaveNoWordForIsSaid) {
  const Trace trace = read_native(
      R"({"format": "topsim.trace/1", "ranks": 2, "programs": [{"ranks": [0, 1], "nodes": [
          {"id": 1, "kind": "host", "duration": "1 us"},
          {"id": 2, "kind": "compute", "duration": "1 us", "processor": 2}]}]})",
      "x.json");
  EXPECT_THAT(left_out_of_chakra(trace), testing::ElementsAre(HasSubstr("2 nodes of processors")));
  EXPECT_THAT(left_out_of_goal(trace), testing::ElementsAre(HasSubstr("2 host nodes")));
  ASSERT_NE(find_format("native"), nullptr);
  EXPECT_EQ(find_format("native")->left_out, nullptr);
}
}  // namespace topsim::workloads::trace::formats_test
