#include "sim/config/object.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/config/home_of_key.hpp"

namespace demo {
using namespace topsim;
enum class Schedule : std::uint8_t { gpipe, one_f_one_b };
struct Link {
  std::string name;
  std::optional<Duration> latency;
  bool operator==(const Link&) const = default;
};
struct Lanes {
  int count = 1;
  bool operator==(const Lanes&) const = default;
};
struct Plan {
  int tp = 1;
  std::uint8_t small = 0;
  Schedule schedule = Schedule::one_f_one_b;
  std::optional<Schedule> other;
  std::optional<Bytes> bucket;
  double ratio = 0.5;
  bool flag = false;
  Link link;
  std::vector<double> oversubscription = {1};
  std::variant<std::string, std::vector<int>> placement = "packed";
  std::map<std::string, BytesPerSecond> rates;
  std::vector<Link> links;
  Lanes lanes;
  bool operator==(const Plan&) const = default;
};
const config::Object<Lanes>& table(config::Type<Lanes>) {
  static const auto object = config::Object<Lanes>("lanes", "Of a link")
                                 .field("count", &Lanes::count, "how many", config::at_least(1))
                                 .shorthand("count", config::Kind::integer);
  return object;
}
const config::Object<Link>& table(config::Type<Link>) {
  static const auto object = config::Object<Link>("link", "A cable")
                                 .field("use", &Link::name, "catalogue name", config::required())
                                 .field("latency", &Link::latency, "one way")
                                 .shorthand("use");
  return object;
}
const config::Object<Plan>& table(config::Type<Plan>) {
  static const auto names =
      config::names<Schedule>({{"gpipe", Schedule::gpipe}, {"1f1b", Schedule::one_f_one_b}});
  static const auto object =
      config::Object<Plan>("plan", "How the model is cut")
          .field("tp", &Plan::tp, "tensor-parallel size", config::at_least(1))
          .field("small", &Plan::small, "a byte")
          .field("schedule", &Plan::schedule, "order of micro-batches", names)
          .field("other", &Plan::other, "another", names)
          .field("bucket", &Plan::bucket, "bucket", config::default_text("40 MiB"),
                 config::example("\"25 MB\""))
          .field("ratio", &Plan::ratio, "a share", config::between(0, 1))
          .field("flag", &Plan::flag, "a switch")
          .field("link", &Plan::link, "the cable")
          .field("oversubscription", &Plan::oversubscription, "a tier each", config::one_or_list<double>())
          .field("placement", &Plan::placement, "where")
          .field("rates", &Plan::rates, "by name")
          .field("links", &Plan::links, "several")
          .field("lanes", &Plan::lanes, "a link's")
          .check([](const Plan& plan, const config::Node& node, config::Reader& reader) {
            if (plan.tp > 8 && plan.flag) reader.problem(node.find("flag"), "not with so large a tp");
          });
  return object;
}
}  // namespace demo

namespace topsim::config::object_test {
using testing::HasSubstr;

demo::Plan read_plan(const std::string& text) {
  return read<demo::Plan>(Document::parse(text, "f.json"));
}

std::vector<Problem> refused(const std::string& text) {
  try {
    (void)read_plan(text);
  } catch (const ConfigError& error) {
    return error.problems();
  }
  ADD_FAILURE() << "accepted: " << text;
  return {};
}

TEST(Object, AShorthandMayBeANumber) {
  EXPECT_EQ(read_plan(R"({"lanes": 4})").lanes.count, 4);
  EXPECT_EQ(read_plan(R"({"lanes": {"count": 4}})").lanes.count, 4);
  EXPECT_THAT(refused(R"({"lanes": "4"})").at(0).message, HasSubstr("a number or an object"));
  EXPECT_THAT(refused(R"({"lanes": 0})").at(0).message, HasSubstr("0 is out of range"));
}

TEST(Object, DefaultsAreTheStructsOwnInitialisers) {
  EXPECT_EQ(read_plan("{}"), demo::Plan{});
}

TEST(Object, ReadsEveryShape) {
  const demo::Plan plan = read_plan(R"({"tp": 8, "schedule": "gpipe", "other": "1f1b", "bucket": "25 MiB",
    "ratio": 1, "flag": true, "link": {"use": "ib-ndr", "latency": "700 ns"}, "oversubscription": [2, 1],
    "placement": [3, 1], "rates": {"a": "400 Gbit/s"}, "links": ["x", {"use": "y"}], "// why": "a remark",
    "$schema": "s", "description": "d", "small": null})");
  EXPECT_EQ(plan.tp, 8);
  EXPECT_EQ(plan.schedule, demo::Schedule::gpipe);
  EXPECT_EQ(plan.other, demo::Schedule::one_f_one_b);
  EXPECT_EQ(plan.bucket, Bytes(25 << 20));
  EXPECT_EQ(plan.link, (demo::Link{"ib-ndr", Duration(700'000)}));
  EXPECT_EQ(plan.oversubscription, (std::vector<double>{2, 1}));
  EXPECT_EQ(std::get<std::vector<int>>(plan.placement), (std::vector<int>{3, 1}));
  EXPECT_EQ(plan.rates.at("a"), BytesPerSecond(50e9));
  EXPECT_EQ(plan.links[1].name, "y");
  EXPECT_EQ(read_plan(R"({"oversubscription": 2})").oversubscription, std::vector<double>{2});
}

TEST(Object, WhatIsWrittenReadsBackTheSame) {
  demo::Plan plan;
  plan.tp = 4;
  plan.bucket = Bytes(12345);
  plan.link = {"roce", Duration(1)};
  plan.placement = std::vector<int>{1, 2};
  plan.rates["x"] = BytesPerSecond(1.0 / 3);
  plan.links = {{"a", std::nullopt}, {"b", Duration(7)}};
  EXPECT_EQ(read_plan(write(plan)), plan);
}

// "count" is a key of lanes; "seq_len" is none here. Elements of a list have no single path, so "use" and
// "latency" are found in `link`, not in `links`.
TEST(HomeOfKey, IsThePathOfTheObjectThatHasIt) {
  EXPECT_EQ(home_of_key<demo::Plan>("count"), "lanes.count");
  EXPECT_EQ(home_of_key<demo::Plan>("latency"), "link.latency");
  EXPECT_EQ(home_of_key<demo::Plan>("tensor_parallel"), "tp");  // what others call it
  EXPECT_EQ(home_of_key<demo::Plan>("seq_len"), "");
}

TEST(HomeOfKey, IsNamedBesideAKeyThatIsSpelledNearly) {
  Reader reader;
  reader.set_home([](std::string_view key) { return home_of_key<demo::Plan>(key); });
  const Document document =
      Document::parse(R"({"latency": "1 us", "lane": 2, "lanes": {"tp": 4, "cont": 1}})", "f");
  demo::Plan plan;
  codec_for<demo::Plan>()->read(document.root(), plan, reader);
  std::vector<std::string> labels;
  try {
    reader.finish();
  } catch (const ConfigError& error) {
    for (const Problem& problem : error.problems()) labels.push_back(problem.label);
  }
  EXPECT_THAT(labels, testing::ElementsAre(R"(did you mean "link.latency"?)", R"(did you mean "lanes"?)",
                                           R"(did you mean "tp"?)", R"(did you mean "count"?)"));
}

// A file's words are as people write them; what is written back has the table's.
TEST(Object, WordsOfAListAreReadInAnyCapitals) {
  EXPECT_EQ(read_plan(R"({"tp": 1, "schedule": "GPipe"})").schedule, demo::Schedule::gpipe);
  EXPECT_EQ(read_plan(R"({"tp": 1, "schedule": "1F1B"})").schedule, demo::Schedule::one_f_one_b);
  EXPECT_EQ(refused(R"({"tp": 1, "schedule": "g-pipe"})")[0].label, "did you mean \"gpipe\"?");
}

TEST(Object, AllMistakesOfAFileAreFoundAtOnceInItsOrder) {
  const auto problems = refused(
      "{\"tpp\": 8,\n\"ratio\": 2,\n\"tp\": 0,\n\"bucket\": 25,\n\"schedule\": \"gpip\",\n\"flag\": "
      "\"true\",\n"
      "\"small\": 256,\n\"link\": {},\n\"rates\": {\"a\": \"4 Gb/s\"},\n\"placement\": true}");
  ASSERT_EQ(problems.size(), 10U);
  EXPECT_EQ(problems[0].message, "unknown key \"tpp\"");
  EXPECT_EQ(problems[0].label, "did you mean \"tp\"?");
  EXPECT_THAT(problems[0].help, HasSubstr("keys of a plan: bucket, flag, lanes, link"));
  EXPECT_EQ(problems[1].label, "must be between 0 and 1");
  EXPECT_EQ(problems[2].label, "must be at least 1");
  EXPECT_EQ(problems[3].message, "25 needs a unit");
  EXPECT_EQ(problems[4].label, "did you mean \"gpipe\"?");
  EXPECT_EQ(problems[5].label, "write true without quotes");
  EXPECT_EQ(problems[6].message, "256 is too large");
  EXPECT_EQ(problems[7].message, "missing key \"use\"");
  EXPECT_EQ(problems[8].path, "rates.a");
  EXPECT_THAT(problems[9].message, HasSubstr("expected a string, or a list"));
  for (std::size_t i = 0; i < problems.size(); ++i)
    EXPECT_EQ(problems[i].place.line, static_cast<int>(i) + 1);
}

TEST(Object, RulesSeeTheWholeStruct) {
  EXPECT_EQ(refused(R"({"tp": 16, "flag": true})").front().path, "flag");
}

TEST(Object, NumbersThatAreNoCountsAreRefused) {
  EXPECT_THAT(refused(R"({"tp": 2.5})").front().message, HasSubstr("found 2.5"));
  EXPECT_THAT(refused(R"({"tp": -3})").front().message, HasSubstr("out of range"));
  EXPECT_THAT(refused(R"({"small": -3})").front().message, HasSubstr("negative"));
  EXPECT_THAT(refused(R"({"tp": 99999999999999999999})").front().message, HasSubstr("too large"));
  EXPECT_THAT(refused(R"({"tp": "8"})").front().label, HasSubstr("without quotes"));
  EXPECT_EQ(read_plan(R"({"tp": 1e1})").tp, 10);
}

TEST(Object, TheSchemaSaysWhatTheReaderTakes) {
  const std::string text = schema<demo::Plan>("plan");
  EXPECT_THAT(text, HasSubstr("https://json-schema.org/draft/2020-12/schema"));
  const Document d = Document::parse(text, "schema");
  const Node plan = d.root().find("$defs").find("plan");
  EXPECT_EQ(plan.find("properties").find("tp").find("minimum").integer(), 1);
  EXPECT_EQ(plan.find("properties").find("tp").find("default").integer(), 1);
  // Null is as if left out, for numbers and words alike.
  EXPECT_EQ(plan.find("properties").find("tp").find("type")[1].text(), "null");
  EXPECT_EQ(plan.find("properties").find("schedule").find("enum").size(), 3U);  // gpipe, 1f1b, null
  EXPECT_EQ(plan.find("properties").find("schedule").find("default").text(), "1f1b");
  EXPECT_FALSE(plan.find("additionalProperties").boolean());
  EXPECT_TRUE(d.root().find("$defs").find("link").find("anyOf"));
}
}  // namespace topsim::config::object_test
