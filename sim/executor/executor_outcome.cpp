// The results of a run: link records from the first measured step on, and the outcome.
#include <fmt/format.h>

#include <algorithm>

#include "sim/base/error.hpp"
#include "sim/executor/critical_path.hpp"
#include "sim/executor/executor.hpp"
#include "sim/executor/executor_class.hpp"
#include "sim/executor/reasons.hpp"

namespace topsim::executor {

void Executor::sample_links() {
  carrier_.advance(now(), done_);
  sampler_->sample([&](std::uint32_t l) { return record(l).bytes; });
  if (engine_.empty() && done_.empty() && network_.next_event() == kNever) throw_deadlock();
  engine_.at(sampler_->next(), payload(EventKind::sample, 0, 0));
}

network::LinkRecord Executor::record(std::uint32_t l) const {
  network::LinkRecord sum = network_.record(l);
  const network::LinkRecord isolated = isolated_.record(l, now());
  sum.bytes += isolated.bytes;
  sum.busy += isolated.busy;
  sum.peak_rate = std::max(sum.peak_rate, isolated.peak_rate);
  return sum;
}

void Executor::snapshot() {
  end_all_walks();
  carrier_.advance(now(), done_);  // updates the byte counts
  network_.settle();
  if (!options_.explained) return;
  before_.clear();
  for (std::uint32_t l = 0; l < system_.links.size(); ++l) before_.push_back(record(l));
  if (options_.timeline) {
    sampler_.emplace(system_.links.size(), now());
    for (std::uint32_t l = 0; l < system_.links.size(); ++l) sampler_->skip(l, before_[l].bytes);
    engine_.at(sampler_->next(), payload(EventKind::sample, 0, 0));
  }
}

void Executor::throw_deadlock() const {
  std::string waiting;
  int shown = 0;
  for (std::uint32_t r = 0; r < ranks_.size() && shown < 4; ++r) {
    for (std::uint16_t s = 0; s < ranks_[r].table->ops.size(); ++s) {
      if (!ranks_[r].running[s]) continue;
      const std::uint32_t op = ranks_[r].table->ops[s][ranks_[r].next[s]];
      waiting +=
          fmt::format("{}rank {} waits in {} (op {})", shown ? "; " : "", system_.ranks[r].members[0].value,
                      program_.labels[ranks_[r].program->ops[op].label], op);
      ++shown;
      break;
    }
  }
  throw Blocked("the workload cannot finish: every rank waits for another", waiting);
}

Outcome Executor::outcome() {
  end_all_walks();
  network_.settle();
  Outcome out;
  out.complete = finished_;
  out.folded = system_.folded;
  const auto& boundaries = accounting_.boundaries();
  const auto warmup = static_cast<std::size_t>(options_.warmup);
  if (boundaries.size() >= warmup && warmup > 0) out.measured_begin = boundaries[warmup - 1];
  // Links are counted up to the last event: an interrupted run includes what the unfinished step has sent.
  out.end = finished_ && boundaries.size() > warmup ? boundaries.back() : now();
  for (std::size_t s = warmup; s < boundaries.size(); ++s) {
    out.step_times.push_back(boundaries[s] - (s == 0 ? SimTime{} : boundaries[s - 1]));
  }
  out.events = engine_.events() + network_.events();
  out.walks = lock_step_.walks();
  out.remembered_walks = lock_step_.remembered();
  out.flows = carrier_.transfers() + isolated_.transfers();
  out.group_classes = system_.groups.size();
  if (!options_.explained) return out;
  const Reason at_end = reason_at_end(program_);
  for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
    out.ranks.push_back(
        {system_.ranks[r].program_class, system_.ranks[r].members, accounting_.steps(r, at_end)});
  }
  std::vector<std::uint32_t> rows(system_.links.size(), LinkSampler::kNoRow);
  if (boundaries.size() < warmup) before_.assign(system_.links.size(), {});
  for (std::uint32_t l = 0; l < system_.links.size(); ++l) {
    const network::LinkRecord record = this->record(l);
    if (record.bytes <= 0) continue;
    rows[l] = static_cast<std::uint32_t>(out.links.size());
    out.links.push_back({system_.links[l].members, record.bytes - before_[l].bytes, record.peak_rate,
                         record.busy - before_[l].busy});
  }
  if (sampler_) {
    sampler_->finish(now(), [&](std::uint32_t l) { return record(l).bytes; });
    out.link_samples = sampler_->samples(rows);
  }
  out.collectives = calls_.records(carrier_);
  out.timeline = std::move(timeline_);
  out.idle = std::move(idle_);
  if (finished_) {
    const SimTime last_begin = boundaries.size() > 1 ? boundaries[boundaries.size() - 2] : SimTime{};
    out.critical_path = critical_path(ranks_, charges_, charge_of_, calls_, system_, last_rank_, last_begin,
                                      options_.pace_changes.empty());
  }
  return out;
}
}  // namespace topsim::executor
