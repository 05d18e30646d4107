#include "sim/validation/ranking.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

namespace topsim::validation {
namespace {

using Group = std::vector<const Prediction*>;

template <std::size_t N>
std::string without(const Case& c, const std::array<std::string_view, N>& prefixes) {
  std::string key = c.family + '\n' + c.release;
  for (const std::string& assignment : c.assignments) {
    const bool drop = std::any_of(prefixes.begin(), prefixes.end(), [&](std::string_view prefix) {
      return assignment.compare(0, prefix.size(), prefix) == 0;
    });
    if (!drop) key += '\n' + assignment;
  }
  return key;
}

std::map<std::string, Group> grouped(const Group& steps, std::string Prediction::*key) {
  std::map<std::string, Group> groups;
  for (const Prediction* step : steps)
    if (step->figure == Figure::step && step->predicted) groups[step->*key].push_back(step);
  return groups;
}

// Least squares of log2(accelerator seconds per sample) over log2(accelerators).
double slope(const Group& series, double (*seconds_of)(const Prediction&)) {
  double n = 0, x = 0, y = 0, xx = 0, xy = 0;
  for (const Prediction* p : series) {
    const double size = std::log2(p->accelerators);
    const double cost = std::log2(seconds_of(*p) * p->accelerators / p->samples);
    n += 1, x += size, y += cost, xx += size * size, xy += size * cost;
  }
  return (n * xy - x * y) / (n * xx - x * x);
}

int sign(double value) {
  return (value > 0) - (value < 0);
}

// Counts pairs that predictions put in the published order (+1) or the other (-1), by family.
class Agreement {
 public:
  void add(const std::string& family, int order) {
    auto& [sum, count] = families_[family];
    sum += order, ++count;
  }
  [[nodiscard]] std::size_t pairs() const {
    std::size_t pairs = 0;
    for (const auto& [family, counts] : families_) pairs += counts.second;
    return pairs;
  }
  [[nodiscard]] std::optional<double> mean_of_families() const {
    if (families_.empty()) return std::nullopt;
    double sum = 0;
    for (const auto& [family, counts] : families_) sum += counts.first / static_cast<double>(counts.second);
    return sum / static_cast<double>(families_.size());
  }
  [[nodiscard]] std::optional<double> of_pairs() const {
    if (families_.empty()) return std::nullopt;
    double sum = 0;
    for (const auto& [family, counts] : families_) sum += counts.first;
    return sum / static_cast<double>(pairs());
  }

 private:
  std::map<std::string, std::pair<int, std::size_t>> families_;
};
}  // namespace

std::string ranking_of(const Case& c) {
  std::string key = without(c, std::array<std::string_view, 2>{"workload.plan.", "workload.model="});
  // The batch belongs to the job, not to the layout; padded vocabularies depend on tp.
  for (const std::string& assignment : c.assignments) {
    if (assignment.rfind("workload.plan.global_batch=", 0) == 0) key += '\n' + assignment;
    if (assignment.rfind("workload.model=", 0) != 0) continue;
    const std::size_t vocab = assignment.find("\"vocab\"");
    key += '\n' + (vocab == std::string::npos ? assignment
                                              : assignment.substr(0, vocab) +
                                                    assignment.substr(assignment.find_first_of(",}", vocab)));
  }
  return key;
}

std::string series_of(const Case& c) {
  return without(
      c, std::array<std::string_view, 5>{"topology.nodes=", "topology.accelerators=", "topology.fabric=",
                                         "workload.plan.global_batch=", "workload.plan.dp="});
}

void rank(const Group& steps, Summary& summary) {
  Agreement all, distinct;
  for (const auto& [key, group] : grouped(steps, &Prediction::ranking)) {
    for (std::size_t i = 0; i < group.size(); ++i) {
      for (std::size_t j = i + 1; j < group.size(); ++j) {
        const int published = sign(group[i]->published - group[j]->published);
        const int predicted = sign(*group[i]->predicted - *group[j]->predicted);
        // One layout measured twice (releases of a framework) is not a pair.
        if (published == 0 || predicted == 0) continue;
        const double apart = std::abs(std::log(group[i]->published / group[j]->published));
        all.add(group[i]->family, published * predicted);
        if (apart > std::log1p(kNoiseFloor)) distinct.add(group[i]->family, published * predicted);
      }
    }
  }
  for (const Prediction* p : steps) {  // a comparison is a pair
    if (p->figure != Figure::ratio || !p->predicted) continue;
    const int order = sign(p->published - 1) * sign(*p->predicted - 1);
    if (order == 0) continue;
    all.add(p->family, order);
    if (std::abs(std::log(p->published)) > std::log1p(kNoiseFloor)) distinct.add(p->family, order);
  }
  summary.pairs = all.pairs();
  summary.distinct_pairs = distinct.pairs();
  summary.tau = all.mean_of_families();
  summary.tau_of_pairs = all.of_pairs();
  summary.tau_beyond_noise = distinct.mean_of_families();

  double difference = 0;
  for (const auto& [key, group] : grouped(steps, &Prediction::series)) {
    std::vector<double> sizes;
    for (const Prediction* p : group) sizes.push_back(p->accelerators);
    std::sort(sizes.begin(), sizes.end());
    if (std::unique(sizes.begin(), sizes.end()) - sizes.begin() < 3) continue;
    const double predicted = slope(group, [](const Prediction& p) { return *p.predicted; });
    const double published = slope(group, [](const Prediction& p) { return p.published; });
    difference += std::abs(std::exp2(predicted - published) - 1);
    ++summary.series;
  }
  if (summary.series > 0) summary.slope = difference / static_cast<double>(summary.series);
}
}  // namespace topsim::validation
