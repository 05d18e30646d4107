#include "sim/study/sweep_session.hpp"

#include <fmt/format.h>

#include "sim/base/error.hpp"
#include "sim/scenario/read/shipped.hpp"
#include "sim/study/sweep_choice.hpp"
#include "sim/study/sweep_figures.hpp"

namespace topsim::study {
namespace {
bool is_below(const std::string& path, const std::string& above) {
  return path.size() > above.size() && path.starts_with(above) &&
         (path[above.size()] == '.' || path[above.size()] == '[');
}

// What a varied value replaces must not be set for all points: it would be ignored without a word.
void refuse_set_and_varied(const std::vector<std::string>& settings, const std::vector<std::string>& varied) {
  const char* help = "leave out what sets it (set, network, seed) or what varies it";
  for (const std::string& setting : settings) {
    const std::string path = setting.substr(0, setting.find('='));
    for (const std::string& each : varied) {
      if (path == each)
        throw ConfigError(path + " is varied, and set for all points, which has no effect", help);
      if (is_below(path, each))
        throw ConfigError(
            fmt::format("{} is set for all points, which has no effect: {} is varied as a whole", path, each),
            help);
    }
  }
}
}  // namespace

SweepSession::SweepSession(SweepRequest request)
    : space_(std::move(request.space)), catalogue_(scenario::shipped_catalogue()) {
  if (!request.best.empty()) by_ = sweep_figure(request.best);
  for (const std::string& name : request.pareto) pareto_figures_.push_back(sweep_figure(name));
  refuse_set_and_varied(request.settings, space_.paths);
  settings_ = std::move(request.settings);
  base_.read = std::move(request.read);
  base_.catalogue = &catalogue_;
  base_.inputs = inputs_digest(scenario::catalogue_directories());
  base_.allow_oom = request.allow_oom;
  check_values(space_, base_);
  const scenario::Scenario given = readable_scenario(space_, base_);
  scenario_ = given.name;
  tasks_ = tasks_of(space_, base_, given);
  dp_follows_ = let_data_parallel_follow(space_, base_);
  store_ = std::make_unique<SweepStore>(request.file, space_, sweep_identity(space_, base_));
}

void SweepSession::run(int jobs, SweepProgress& progress) {
  run_sweep(space_, base_, *store_, jobs, progress);
}

std::vector<std::size_t> SweepSession::claim_missing() {
  std::vector<std::size_t> points;
  for (std::size_t point = 0; point < space_.points.size(); ++point)
    if (store_->claim(point, key(point))) points.push_back(point);
  return points;
}

std::string SweepSession::key(std::size_t point) const {
  return point_key(base_, space_.assignments(point));
}

bool SweepSession::compute(std::size_t point, SweepRow& row, executor::Progress& progress) const {
  row.point = point;
  row.values = space_.points.at(point);
  return run_point(base_, space_.assignments(point), row, progress);
}

SweepReport SweepSession::report() const {
  SweepReport report;
  report.scenario = scenario_;
  report.space = space_;
  report.settings = settings_;
  report.asked = {by_, !pareto_figures_.empty(), base_.allow_oom};
  report.tasks = tasks_;
  report.rows = store_->rows();
  report.by = by_ ? *by_ : usual_figure(report.rows);
  report.pareto_figures = pareto_figures_.empty() ? usual_pareto_figures(report.rows) : pareto_figures_;
  report.complete = report.rows.size() == space_.points.size();
  report.assumed_releases = study::assumed_releases(report.rows);
  return report;
}
}  // namespace topsim::study
