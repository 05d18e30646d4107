#include "sim/validation/validate.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>

#include "sim/base/parallel.hpp"
#include "sim/scenario/bench/bench.hpp"
#include "sim/scenario/read/read.hpp"
#include "sim/scenario/run/simulate.hpp"
#include "sim/validation/ranking.hpp"

namespace topsim::validation {
namespace {

Prediction prediction_of(const Case& c, std::string name, std::string family, Figure figure,
                         double published) {
  Prediction result;
  result.name = std::move(name);
  result.family = std::move(family);
  result.source = c.source;
  result.figure = figure;
  result.published = published;
  return result;
}

// The figures that the row publishes, without predictions.
std::vector<Prediction> asked_for(const Case& c) {
  std::vector<Prediction> results;
  if (c.published > Duration{}) {
    results.push_back(prediction_of(c, c.name, c.family, Figure::step, seconds(c.published)));
    results.back().ranking = ranking_of(c);
    results.back().series = series_of(c);
  }
  const auto add = [&](const std::string& what, Figure figure, double value) {
    results.push_back(prediction_of(c, c.name + ' ' + what, c.family + '/' + what, figure, value));
  };
  if (c.memory) add("memory", Figure::memory, static_cast<double>(c.memory->value()));
  for (const auto& [share, value] : c.shares) {
    add(name_of(share), Figure::share, value);
    results.back().share = share;
  }
  for (const Point& point : c.points)
    results.push_back(prediction_of(c, c.name + ' ' + config::to_text(point.size),
                                    band_of(c.family, point.size), Figure::collective,
                                    seconds(point.published)));
  return results;
}

// The part of the step in which an accelerator waits for messages.
double exposed_communication(const metrics::Account& account) {
  using executor::Reason;
  double waits = 0;
  for (const Reason reason : {Reason::tensor_parallel, Reason::data_parallel, Reason::pipeline_transfer,
                              Reason::context_parallel, Reason::expert_parallel})
    waits += seconds(account.idle[static_cast<std::size_t>(reason)]);
  return waits / seconds(account.total());
}

double share_of(Share share, const metrics::Account& account) {
  const double step = seconds(account.total()), busy = seconds(account.busy);
  const double communicating = seconds(account.communication);
  switch (share) {
    case Share::idle:
      return seconds(account.idle_total()) / step;
    case Share::communication:
      return exposed_communication(account);
    case Share::communication_busy:
      return communicating / step;
    case Share::overlapped:
      return communicating > 0 ? seconds(account.hidden_communication) / communicating : 0;
    case Share::communication_of_kernels:
      return communicating > 0 ? communicating / (communicating + busy) : 0;
  }
  return 0;
}

// The total to which a prediction belongs.
std::string total_of(const Prediction& p) {
  switch (p.figure) {
    case Figure::step:
      return "steps";
    case Figure::memory:
      return "memory";
    case Figure::collective:
      return "collectives" + p.family.substr(p.family.rfind('/'));
    case Figure::ratio:
      return "comparisons";
    case Figure::share:
      break;
  }
  return "shares";
}

// What a case has, and what others are compared with.
struct Predicted {
  std::vector<Prediction> figures;
  double accelerators = 0, samples = 0;  // of a step
  double step = 0;                       // s; 0: not simulated
  std::string problem;
  [[nodiscard]] double cost(double seconds) const { return seconds * accelerators / samples; }
};

void predict_step(const scenario::Scenario& scenario, const topology::Catalogue& catalogue,
                  const std::shared_ptr<collective::Searches>& searches, executor::Progress& progress,
                  Predicted& out) {
  scenario::SimulateOptions options;
  options.searches = searches;
  options.allow_oom = true;  // the real run fitted; our memory estimate is reported
  const report::Result result = scenario::simulate(scenario, catalogue, options, &progress).result;
  out.step = seconds(result.step);
  out.accelerators = result.accelerators;
  out.samples = result.throughput.samples_per_second * out.step;
  for (Prediction& p : out.figures) {
    p.fits = result.memory.fits;
    p.accelerators = out.accelerators;
    p.samples = out.samples;
    if (p.figure == Figure::step) p.predicted = out.step;
    if (p.figure == Figure::memory) p.predicted = static_cast<double>(result.memory.per_accelerator.value());
    if (p.share) p.predicted = share_of(*p.share, result.account);
  }
}

std::string in_a_line(const Problem& problem) {
  const bool suggests = problem.label.starts_with("did you mean");
  const std::string& remedy = suggests || problem.help.empty() ? problem.label : problem.help;
  const std::string text = (problem.path.empty() ? "" : problem.path + ": ") + problem.message;
  return remedy.empty() ? text : text + "; " + remedy;
}

Predicted predict(const Case& c, const topology::Catalogue& catalogue, const config::Library& library,
                  const std::shared_ptr<collective::Searches>& searches, executor::Progress& progress) {
  Predicted out;
  std::vector<Prediction>& results = out.figures = asked_for(c);
  try {
    const scenario::Scenario scenario =
        scenario::parse_scenario(c.base, c.name, c.assignments, library, c.directory);
    if (!c.collective) {
      predict_step(scenario, catalogue, searches, progress, out);
      return out;
    }
    for (std::size_t i = 0; i < results.size(); ++i) {
      const Bytes size = c.points[i].size;
      const auto [rows, findings] =
          scenario::bench(scenario, catalogue, *c.collective, {size, size, 2}, &progress, searches);
      for (const report::Finding& each : findings)  // what the row describes would not be what is simulated
        if (each.path.starts_with("network.nccl")) throw ConfigError(each.message, each.remedy);
      if (rows.empty()) break;  // stopped
      results[i].predicted = seconds(rows.front().time);
    }
  } catch (const ConfigError& error) {
    out.problem = in_a_line(error.problems().front());
    for (Prediction& p : results) p.problem = out.problem;
  }
  return out;
}

// The case beside the one that it names.
Prediction compare(const Case& c, const Predicted& its, const Case& base, const Predicted& bases) {
  Prediction p = prediction_of(c, c.name + " / " + base.name, c.family + "/compared", Figure::ratio,
                               c.ratio.value_or(0));
  p.problem = its.problem.empty() ? bases.problem : its.problem;
  if (its.step > 0 && bases.step > 0) {
    p.predicted = its.cost(its.step) / bases.cost(bases.step);
    if (!c.ratio) p.published = its.cost(seconds(c.published)) / bases.cost(seconds(base.published));
  }
  return p;
}

// The value below which `share` of the weight lies, or the mean of two values if it is between them: the
// median of an even number is the mean of the middle two. `values` must be sorted.
double percentile(const std::vector<std::pair<double, double>>& values, double share) {
  double total = 0, sum = 0;
  for (const auto& [value, weight] : values) total += weight;
  for (std::size_t i = 0; i + 1 < values.size(); ++i) {
    sum += values[i].second;
    if (sum > share * total * (1 + 1e-12)) return values[i].first;
    if (sum >= share * total * (1 - 1e-12)) return (values[i].first + values[i + 1].first) / 2;
  }
  return values.back().first;
}
}  // namespace

double Prediction::error() const {
  if (!predicted) return 0;
  return figure == Figure::share ? *predicted - published : *predicted / published - 1;
}

Summary summarise(const std::vector<const Prediction*>& predictions) {
  Summary summary;
  summary.cases = predictions.size();
  std::map<std::string, double> members;
  for (const Prediction* p : predictions) {
    if (p->predicted) {
      members[p->family] += 1;
    } else {
      ++summary.failed;
    }
  }
  if (members.empty()) return summary;
  std::vector<std::pair<double, double>> errors;
  for (const Prediction* p : predictions) {
    if (!p->predicted) continue;
    const double weight = 1 / (members[p->family] * static_cast<double>(members.size()));
    errors.emplace_back(std::abs(p->error()), weight);
    summary.mean += weight * std::abs(p->error());
    summary.bias += weight * p->error();
  }
  std::sort(errors.begin(), errors.end());
  summary.median = percentile(errors, 0.5);
  summary.percentile_90 = percentile(errors, 0.9);
  summary.max = errors.back().first;
  rank(predictions, summary);
  return summary;
}

bool Summary::meets(const Bar& limits) const {
  const auto within = [](double value, const std::optional<double>& limit) {
    return !limit || value <= *limit;
  };
  return within(mean, limits.mean) && within(median, limits.median) &&
         within(percentile_90, limits.percentile_90) && within(max, limits.max) &&
         within(std::abs(bias), limits.bias) && within(slope.value_or(0), limits.slope) &&
         (!limits.tau || tau.value_or(1) >= *limits.tau);
}

bool Report::passed() const {
  return std::all_of(families.begin(), families.end(),
                     [](const auto& entry) { return entry.second.passed(); });
}

Report validate(const std::vector<CaseFile>& files, const topology::Catalogue& catalogue,
                const config::Library& library, int jobs, executor::Progress* progress) {
  std::vector<const Case*> cases;
  std::map<const Case*, std::size_t> compared;  // with which
  for (const CaseFile& file : files) {
    const std::size_t first = cases.size();
    for (const Case& c : file.cases) {
      cases.push_back(&c);
      if (c.compared_with.empty()) continue;
      const auto base = std::find_if(file.cases.begin(), file.cases.end(),
                                     [&](const Case& other) { return other.name == c.compared_with; });
      compared[&c] = first + static_cast<std::size_t>(base - file.cases.begin());
    }
  }
  std::vector<Predicted> predicted(cases.size());
  if (progress != nullptr) progress->runs_total = cases.size();
  const auto stopped = [&] { return progress != nullptr && progress->stop; };
  const std::shared_ptr<collective::Searches> searches = collective::no_searches_yet();
  const auto predict_one = [&](std::size_t i) {
    executor::Progress run;
    if (progress != nullptr) run.stop_all = &progress->stop;
    Predicted done = predict(*cases[i], catalogue, library, searches, run);
    if (stopped()) return;
    predicted[i] = std::move(done);
    if (progress != nullptr) ++progress->runs_done;
  };
  parallel::in_order(cases.size(), jobs, predict_one, stopped);

  Report report;
  report.complete = !stopped();
  for (std::size_t i = 0; i < cases.size(); ++i) {
    std::ranges::copy(predicted[i].figures, std::back_inserter(report.predictions));
    const auto base = compared.find(cases[i]);
    if (base == compared.end()) continue;
    if (Prediction p = compare(*cases[i], predicted[i], *cases[base->second], predicted[base->second]);
        p.predicted || !p.problem.empty())  // neither: interrupted
      report.predictions.push_back(std::move(p));
  }
  std::map<std::string, std::vector<const Prediction*>> members;
  for (const Prediction& p : report.predictions) members[p.family].push_back(&p);
  for (const auto& [family, predictions] : members) report.families[family] = summarise(predictions);
  for (const CaseFile& file : files) {
    for (auto& [family, summary] : report.families) {
      if (const auto bar = file.bars.find(family); bar != file.bars.end()) summary.bar = bar->second;
      if (const auto goal = file.goals.find(family); goal != file.goals.end()) summary.goal = goal->second;
    }
  }
  std::set<std::string> unscored;
  for (const CaseFile& file : files)
    if (!file.scored)
      for (const Case& c : file.cases) unscored.insert(c.family);
  std::map<std::string, std::vector<const Prediction*>> kinds;
  for (const Prediction& p : report.predictions) {
    const std::string base = p.family.substr(0, p.family.find('/'));
    if (!unscored.contains(base)) kinds[total_of(p)].push_back(&p);
  }
  for (const auto& [kind, predictions] : kinds) report.totals[kind] = summarise(predictions);
  return report;
}
}  // namespace topsim::validation
