#include "sim/report/trace.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "sim/base/error.hpp"
#include "sim/base/protobuf_writer.hpp"
#include "sim/report/csv.hpp"
#include "sim/report/write.hpp"
#include "tests/report/sample.hpp"

namespace topsim::report::trace_test {
using namespace topsim::testing;
using ::testing::HasSubstr;

Timeline sample_timeline() {
  const topology::Topology topology = two_nodes();
  return make_timeline(topology, two_ranks(), two_steps(topology));
}

TEST(Timeline, ASendAndItsReceiveShareAFlow) {
  const Timeline timeline = sample_timeline();
  std::vector<std::uint64_t> flows;
  for (const Slice& each : timeline.slices) {
    if (each.flow != 0) flows.push_back(each.flow);
  }
  EXPECT_EQ(flows, (std::vector<std::uint64_t>{1, 1}));
}

TEST(Timeline, AWaitForOthersIsTheFirstPartOfItsOp) {
  const Timeline timeline = sample_timeline();
  const Slice& reduce = timeline.slices.back();
  EXPECT_EQ(timeline.names[reduce.name], "gradient all_reduce");
  EXPECT_TRUE(reduce.waits);
  EXPECT_EQ(reduce.ready, SimTime(18_ms));
}

TEST(ChromeTrace, IsJsonWithSlicesFlowsAndCounters) {
  const auto trace = nlohmann::json::parse(to_chrome_trace(sample_timeline()));
  std::map<std::string, int> phases;
  for (const auto& event : trace.at("traceEvents")) ++phases[event.at("ph").get<std::string>()];
  // Four ops, two waits (receive and all-reduce), one idle interval.
  EXPECT_EQ(phases["X"], 7);
  EXPECT_EQ(phases["s"], 1);
  EXPECT_EQ(phases["f"], 1);
  EXPECT_EQ(phases["C"], 2);
}

TEST(ProtobufWriter, WritesTheExamplesOfTheFormatsOwnPage) {
  ProtobufWriter writer;
  writer.integer(1, 150);  // 08 96 01
  writer.text(2, "testing");
  EXPECT_EQ(writer.bytes(), std::string("\x08\x96\x01\x12\x07testing"));
}

// protoc decodes the trace with the public field numbers, not with the writer's code.
TEST(PerfettoTrace, ProtocReadsEveryTrackSliceFlowAndCounter) {
  // test.sh installs protoc; a plain build need not have it.
  if (std::system("protoc --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "protoc is not installed";
  const auto file = std::filesystem::temp_directory_path() / "topsim-trace.pftrace";
  write_trace(file, sample_timeline());
  const std::string command = "protoc --decode=Trace --proto_path=" TOPSIM_SOURCE_DIR
                              "/tests/report perfetto.proto < " +
                              file.string();
  std::FILE* pipe = popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string text;
  std::array<char, 4096> buffer{};
  for (std::size_t n = 0; (n = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
    text.append(buffer.data(), n);
  EXPECT_EQ(pclose(pipe), 0);
  std::filesystem::remove(file);
  EXPECT_THAT(text, HasSubstr("name: \"rank 0 node0/gpu0 (stage 0)\""));
  EXPECT_THAT(text, HasSubstr("name: \"gradient all_reduce\""));
  EXPECT_THAT(text, HasSubstr("name: \"waiting for the others\""));
  EXPECT_THAT(text, HasSubstr("timestamp: 16000000"));  // nanoseconds
  EXPECT_THAT(text, HasSubstr("flow_ids: 1"));
  EXPECT_THAT(text, HasSubstr("terminating_flow_ids: 1"));
  EXPECT_THAT(text, HasSubstr("double_counter_value: 100"));
  EXPECT_THAT(text, HasSubstr("unit_name: \"%\""));
  const auto count = [&](const std::string& part) {
    std::size_t n = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
    return n;
  };
  // Perfetto uses ranks of tracks only below tracks that ask for it; otherwise it sorts by name, rank 10
  // before rank 2.
  EXPECT_EQ(count("child_ordering: EXPLICIT") + count("unit_name: "), count("sibling_order_rank: "));
  EXPECT_EQ(count("type: TYPE_SLICE_BEGIN"), count("type: TYPE_SLICE_END"));
  EXPECT_EQ(count("type: TYPE_SLICE_BEGIN"), 8U);
  // The receive is posted at 12 ms, its send begins at 16 ms: the arrow must end after that, at the slice of
  // the arrival.
  const std::size_t arrow = text.find("terminating_flow_ids: 1");
  ASSERT_NE(arrow, std::string::npos);
  const std::size_t packet = text.rfind("timestamp: ", arrow);
  EXPECT_EQ(text.compare(packet, 20, "timestamp: 16000001\n"), 0) << text.substr(packet, 60);
}

TEST(Trace, AnUnknownExtensionIsTheUsersMistake) {
  EXPECT_THROW(write_trace("x.txt", sample_timeline()), ConfigError);
  EXPECT_THROW(write_trace("/nowhere/x.json", sample_timeline()), ConfigError);
}

TEST(Trace, IsPackedWhereTheNameEndsInGz) {
  const auto file = std::filesystem::temp_directory_path() / "topsim-trace.json.gz";
  write_trace(file, sample_timeline());
  const std::string text = to_chrome_trace(sample_timeline());
  EXPECT_LT(std::filesystem::file_size(file), text.size());
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> packed(gzopen(file.c_str(), "rb"), gzclose);
  std::string read(text.size() + 1, '\0');
  ASSERT_EQ(gzread(packed.get(), read.data(), static_cast<unsigned>(read.size())),
            static_cast<int>(text.size()));
  read.pop_back();
  EXPECT_EQ(read, text);
  std::filesystem::remove(file);
}

// A table of every slice of a large run would take hundreds of megabytes.
TEST(Directory, PacksATimelineThatIsLarge) {
  const auto folder = std::filesystem::temp_directory_path() / "topsim_directory_test";
  const Timeline timeline = sample_timeline();
  write_directory(folder, sample_result(), {}, &timeline);
  EXPECT_TRUE(std::filesystem::exists(folder / "timeline.csv"));
  EXPECT_FALSE(has_packed_timeline(folder));
  write_directory(folder, sample_result(), {}, &timeline, 10);
  EXPECT_FALSE(std::filesystem::exists(folder / "timeline.csv"));
  EXPECT_TRUE(has_packed_timeline(folder));
  std::filesystem::remove_all(folder);
}

TEST(Csv, EveryRowHasAsManyFieldsAsItsHeader) {
  const Result result = sample_result();
  for (const std::string& table : {summary_csv(result), links_csv(result), ranks_csv(result),
                                   collectives_csv(result), timeline_csv("s", sample_timeline())}) {
    std::istringstream stream(table);
    std::string line;
    std::getline(stream, line);
    EXPECT_EQ(line.substr(0, 9), "scenario,");
    const auto fields = std::count(line.begin(), line.end(), ',');
    int rows = 0;
    for (; std::getline(stream, line); ++rows)
      EXPECT_EQ(std::count(line.begin(), line.end(), ','), fields) << line;
    EXPECT_GT(rows, 0);
  }
}

TEST(Csv, ANameWithACommaIsQuoted) {
  Result result = sample_result();
  result.name = "two, \"nodes\"";
  EXPECT_THAT(links_csv(result), HasSubstr("\n\"two, \"\"nodes\"\"\",leaf0"));
}
}  // namespace topsim::report::trace_test
