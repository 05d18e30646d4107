#include "sim/report/compare_work.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "sim/report/releases.hpp"

namespace topsim::report {
namespace {
// The workload as it ran: the scenario's value of a key, else the value that the run chose, else null.
class Work {
 public:
  explicit Work(const Result& result)
      : said_(parsed(result.scenario)["workload"]), left_open_(parsed(result.left_open)) {}
  [[nodiscard]] nlohmann::json at(const char* key) const {
    const nlohmann::json stated = said_.value(key, nlohmann::json());
    return stated.is_null() ? left_open_.value(key, nlohmann::json()) : stated;
  }

 private:
  // An object in any case, even if the text is not JSON or its members are not objects.
  static nlohmann::json parsed(const std::string& text) {
    nlohmann::json whole = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!whole.is_object()) whole = nlohmann::json::object();
    if (!whole["workload"].is_object()) whole["workload"] = nlohmann::json::object();
    return whole;
  }
  nlohmann::json said_, left_open_;
};

std::string model_name(const nlohmann::json& model) {
  if (model.is_string()) return model.get<std::string>();
  return model.contains("use") ? model["use"].get<std::string>() : "a model of its own";
}

std::string other_model(const nlohmann::json& here, const nlohmann::json& there) {
  const std::string name = model_name(there);
  if (name != model_name(here)) return name;
  return there.is_object() && !there.contains("use") ? "another" : "a variant of it";
}

bool replays(const Work& work) {
  return !work.at("trace").is_null();
}
}  // namespace

std::string other_task(const Comparison& comparison, std::span<const Candidate> candidates, std::size_t c) {
  const Work base(candidates[0].result), other(candidates[c].result);
  const std::string &a = comparison.names[0], &b = comparison.names[c];
  if (replays(base) != replays(other))
    return fmt::format("{} replays a trace and {} computes a model: not the same work", replays(base) ? a : b,
                       replays(base) ? b : a);
  const auto task = [](const Work& work) {
    const nlohmann::json said = work.at("task");
    return said.is_string() ? said.get<std::string>() : std::string("pretrain");
  };
  if (!replays(base) && task(base) != task(other))
    return fmt::format("{} does {}, {} {}: not the same work", a, task(base), b, task(other));
  return "";
}

std::string other_work(const Comparison& comparison, std::span<const Candidate> candidates, std::size_t c) {
  const Work base(candidates[0].result), other(candidates[c].result);
  const std::string &a = comparison.names[0], &b = comparison.names[c];
  const auto differs = [&](const char* key) { return base.at(key) != other.at(key); };
  if (const std::string apart = other_task(comparison, candidates, c); !apart.empty()) return apart;
  if (replays(base))
    return differs("trace") ? fmt::format("{} and {} replay different traces: not the same work", a, b) : "";
  const nlohmann::json model = base.at("model"), model_there = other.at("model");
  if (model != model_there && !model.is_null() && !model_there.is_null())
    return fmt::format("{} computes {}, {} {}: not the same work", a, model_name(model), b,
                       other_model(model, model_there));
  const nlohmann::json tokens = base.at("sequence"), tokens_there = other.at("sequence");
  if (tokens.is_number() && tokens_there.is_number() && tokens != tokens_there)
    return fmt::format("sequences have {} tokens in {}, {} in {}: not the same work",
                       tokens.get<std::int64_t>(), a, tokens_there.get<std::int64_t>(), b);
  return "";
}

std::string other_release(const Comparison& comparison, std::span<const Candidate> candidates,
                          std::size_t c) {
  const Release base = release_of(candidates[0].result), other = release_of(candidates[c].result);
  const std::set<std::string> apart = of_several_years({base.name, other.name});
  if (apart.empty() || !(base.assumed || other.assumed)) return "";
  const auto runs = [](const Release& release) {
    return (release.assumed ? "is assumed to run " : "runs ") + release.name;
  };
  const std::string& both = !base.assumed ? base.name : !other.assumed ? other.name : *apart.rbegin();
  return fmt::format(
      "{} {}, {} {}: a part of the difference is the release's; --set workload.framework={} gives both one",
      comparison.names[0], runs(base), comparison.names[c], runs(other), both);
}
}  // namespace topsim::report
