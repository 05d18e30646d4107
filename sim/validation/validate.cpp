#include "sim/validation/validate.hpp"

#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "sim/scenario/bench.hpp"
#include "sim/scenario/simulate.hpp"

namespace topsim::validation {
namespace {

Prediction prediction_of(const Case& c, std::string name, std::string family, Duration published) {
  Prediction result;
  result.name = std::move(name);
  result.family = std::move(family);
  result.source = c.source;
  result.published = seconds(published);
  return result;
}

std::vector<Prediction> predict_step(const Case& c, const scenario::Scenario& scenario,
                                     const topology::Catalogue& catalogue) {
  Prediction result = prediction_of(c, c.name, c.family, c.published);
  scenario::SimulateOptions options;
  options.allow_oom = true;  // it ran; what our count of its memory says of it is reported
  const scenario::Simulated simulated = scenario::simulate(scenario, catalogue, options, nullptr);
  result.predicted = seconds(simulated.result.step);
  result.fits = simulated.result.memory.fits;
  return {result};
}

std::string size_text(Bytes size) {
  return config::to_text(size);
}

std::vector<Prediction> predict_sweep(const Case& c, const scenario::Scenario& scenario,
                                      const topology::Catalogue& catalogue) {
  std::vector<Prediction> results;
  for (const Point& point : c.points) {
    Prediction result = prediction_of(c, c.name + ' ' + size_text(point.size), band_of(c.family, point.size),
                                      point.published);
    const auto rows = scenario::bench(scenario, catalogue, *c.collective, {point.size, point.size, 2});
    result.predicted = seconds(rows.front().time);
    results.push_back(std::move(result));
  }
  return results;
}

std::vector<Prediction> predict(const Case& c, const topology::Catalogue& catalogue,
                                const config::Library& library) {
  try {
    const scenario::Scenario scenario = scenario::parse_scenario(c.base, c.name, c.assignments, library);
    return c.collective ? predict_sweep(c, scenario, catalogue) : predict_step(c, scenario, catalogue);
  } catch (const ConfigError& error) {
    Prediction result = prediction_of(c, c.name, c.family, c.published);
    if (c.collective) result.family = band_of(c.family, c.points.back().size);
    result.problem = error.problems().front().message;
    return {result};
  }
}

double percentile(const std::vector<double>& sorted, double share) {
  const double rank = std::ceil(share * static_cast<double>(sorted.size()));
  return sorted[static_cast<std::size_t>(std::max(1.0, rank)) - 1];
}
}  // namespace

Summary summarise(const std::vector<const Prediction*>& predictions) {
  Summary summary;
  summary.cases = predictions.size();
  std::vector<double> errors;
  for (const Prediction* p : predictions) {
    if (!p->predicted) {
      ++summary.failed;
      continue;
    }
    errors.push_back(std::abs(p->error()));
    summary.mean += std::abs(p->error());
    summary.bias += p->error();
  }
  if (errors.empty()) return summary;
  const double n = static_cast<double>(errors.size());
  summary.mean /= n;
  summary.bias /= n;
  std::sort(errors.begin(), errors.end());
  summary.median = percentile(errors, 0.5);
  summary.percentile_90 = percentile(errors, 0.9);
  summary.max = errors.back();
  return summary;
}

bool Summary::meets(const Bar& limits) const {
  const auto within = [](double value, const std::optional<double>& limit) {
    return !limit || value <= *limit;
  };
  return within(mean, limits.mean) && within(median, limits.median) &&
         within(percentile_90, limits.percentile_90) && within(max, limits.max) &&
         within(std::abs(bias), limits.bias);
}

bool Report::passed() const {
  return std::all_of(families.begin(), families.end(),
                     [](const auto& entry) { return entry.second.passed(); });
}

Report validate(const std::vector<CaseFile>& files, const topology::Catalogue& catalogue,
                const config::Library& library, int jobs) {
  std::vector<const Case*> cases;
  for (const CaseFile& file : files)
    for (const Case& c : file.cases) cases.push_back(&c);
  std::vector<std::vector<Prediction>> predicted(cases.size());
  oneapi::tbb::task_arena arena(jobs > 0 ? jobs : oneapi::tbb::task_arena::automatic);
  arena.execute([&] {
    oneapi::tbb::parallel_for(
        oneapi::tbb::blocked_range<std::size_t>(0, cases.size(), 1),
        [&](const auto& range) {
          for (std::size_t i = range.begin(); i != range.end(); ++i)
            predicted[i] = predict(*cases[i], catalogue, library);
        },
        oneapi::tbb::simple_partitioner());
  });

  Report report;
  for (std::vector<Prediction>& some : predicted)
    std::move(some.begin(), some.end(), std::back_inserter(report.predictions));
  std::map<std::string, std::vector<const Prediction*>> members;
  for (const Prediction& p : report.predictions) members[p.family].push_back(&p);
  for (const auto& [family, predictions] : members) report.families[family] = summarise(predictions);
  for (const CaseFile& file : files) {
    for (auto& [family, summary] : report.families) {
      if (const auto bar = file.bars.find(family); bar != file.bars.end()) summary.bar = bar->second;
      if (const auto goal = file.goals.find(family); goal != file.goals.end()) summary.goal = goal->second;
    }
  }
  return report;
}
}  // namespace topsim::validation
