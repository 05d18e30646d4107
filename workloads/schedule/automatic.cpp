#include "workloads/schedule/automatic.hpp"

#include <algorithm>
#include <optional>

#include "sim/base/error.hpp"

namespace topsim::workloads::schedule {
namespace {

constexpr Duration kUnknown = Duration::max();

struct Stage {
  std::vector<StageTask> order;
  std::vector<Duration> forwards, inputs;  // ends, by micro-batch
  int weights = 0;                         // weight gradients computed
  Duration now{}, begun{}, idle{};
  bool turn_of_forward = false;
};

// Simulates the pipeline, choosing tasks as it goes.
class Player {
 public:
  Player(const PipelineCosts& costs, int micro_batches, bool eager)
      : costs_(costs), micro_batches_(micro_batches), stages_(costs.stages.size()) {
    warm_up(eager);
    while (step()) {
    }
  }

  // The longest time of a stage from its first task to its last.
  [[nodiscard]] Duration length() const {
    Duration most{};
    for (const Stage& stage : stages_) most = std::max(most, stage.now - stage.begun);
    return most;
  }
  [[nodiscard]] std::vector<std::vector<StageTask>> take() {
    std::vector<std::vector<StageTask>> orders;
    for (Stage& stage : stages_) orders.push_back(std::move(stage.order));
    return orders;
  }

 private:
  [[nodiscard]] int done(const std::vector<Duration>& ends) const { return static_cast<int>(ends.size()); }

  // When the next micro-batch can begin on the stage; kUnknown: not known yet, or none is left.
  [[nodiscard]] Duration forward_ready(std::size_t s) const {
    const std::size_t next = stages_[s].forwards.size();
    if (static_cast<int>(next) == micro_batches_) return kUnknown;
    if (s == 0) return {};
    const std::vector<Duration>& before = stages_[s - 1].forwards;
    return next < before.size() ? before[next] + costs_.transfer : kUnknown;
  }
  [[nodiscard]] Duration input_ready(std::size_t s) const {
    const std::size_t next = stages_[s].inputs.size();
    if (next >= stages_[s].forwards.size()) return kUnknown;
    if (s + 1 == stages_.size()) return stages_[s].forwards[next];
    const std::vector<Duration>& after = stages_[s + 1].inputs;
    return next < after.size() ? after[next] + costs_.transfer : kUnknown;
  }

  void run(std::size_t s, Action action, Duration ready) {
    Stage& stage = stages_[s];
    const PassCosts& cost = costs_.stages[s];
    const Duration start = std::max(stage.now, ready);
    if (stage.order.empty()) {
      stage.begun = start;
    } else {
      stage.idle += start - stage.now;
    }
    int micro_batch = 0;
    if (action == Action::forward) {
      micro_batch = done(stage.forwards);
      stage.forwards.push_back(stage.now = start + cost.forward);
    } else if (action == Action::backward_input) {
      micro_batch = done(stage.inputs);
      stage.inputs.push_back(stage.now = start + cost.input);
    } else {
      micro_batch = stage.weights++;
      stage.now = start + cost.weight;
    }
    stage.order.push_back({action, micro_batch, 0});
  }

  // Whether the stage has memory for that many more `forwards` and `inputs`, counted in micro-batches.
  [[nodiscard]] bool fits(std::size_t s, int forwards, int inputs) const {
    const Stage& stage = stages_[s];
    const int returned = done(stage.inputs) + inputs;
    const double held = done(stage.forwards) + forwards - returned +
                        costs_.stages[s].until_weight * (returned - stage.weights);
    return held <= costs_.held + 1e-9;
  }
  [[nodiscard]] bool owes_weights(const Stage& stage) const { return stage.weights < done(stage.inputs); }

  // Warm-up: the forwards that end before the first gradient can return, and with `eager` the next one;
  // always one more than on the next stage, which would wait for it.
  void warm_up(bool eager) {
    std::vector<Duration> arrival, pace;  // of the first micro-batch; of the following ones
    Duration at{}, slowest{};
    for (const PassCosts& cost : costs_.stages) {
      arrival.push_back(at);
      at += cost.forward + costs_.transfer;
      pace.push_back(slowest = std::max(slowest, cost.forward));
    }
    Duration gradient = at - costs_.transfer;  // when the first gradient can begin to return
    std::vector<int> counts(stages_.size(), 1);
    for (std::size_t s = stages_.size(); s-- > 0;) {
      int& count = counts[s];
      // One more than on the next stage, as far as the first stage's memory allows.
      const int most = std::min(micro_batches_, costs_.held - static_cast<int>(s));
      const auto begins = [&](int i) { return arrival[s] + pace[s] * i; };
      while (count < most &&
             (begins(count) + costs_.stages[s].forward <= gradient || (eager && begins(count) < gradient)))
        ++count;
      if (s + 1 < stages_.size()) count = std::max(count, counts[s + 1] + 1);
      count = std::min(count, most);
      gradient += costs_.stages[s].input + costs_.transfer;
    }
    for (std::size_t s = 0; s < stages_.size(); ++s)
      for (int i = 0; i < counts[s]; ++i) run(s, Action::forward, forward_ready(s));
  }

  struct Choice {
    Action action;
    Duration ready;
  };
  // What the stage would do next; nothing while the time of its input is unknown. `either`: then the other of
  // forward and backward.
  [[nodiscard]] std::optional<Choice> choose(std::size_t s, bool either) const {
    const Stage& stage = stages_[s];
    if (done(stage.inputs) == micro_batches_) return Choice{Action::backward_weight, stage.now};
    const bool forwards_left = done(stage.forwards) < micro_batches_;
    bool forward = forwards_left && stage.turn_of_forward;
    if (owes_weights(stage) && !(forward ? fits(s, 1, 0) : fits(s, 0, 1)))
      return Choice{Action::backward_weight, stage.now};
    if (forward && !fits(s, 1, 0)) forward = false;
    if (either && forwards_left && (forward ? forward_ready(s) : input_ready(s)) == kUnknown &&
        (forward || fits(s, 1, 0)))
      forward = !forward;
    const Duration ready = forward ? forward_ready(s) : input_ready(s);
    if (ready == kUnknown) return std::nullopt;
    return Choice{forward ? Action::forward : Action::backward_input, ready};
  }

  // Runs the next task of the stage that begins first. False at the end.
  bool step() {
    for (const bool either : {false, true}) {
      std::optional<std::pair<Duration, std::size_t>> first;
      Choice chosen{};
      for (std::size_t s = 0; s < stages_.size(); ++s) {
        if (stages_[s].weights == micro_batches_) continue;
        const std::optional<Choice> choice = choose(s, either);
        if (!choice) continue;
        const Duration begins = std::max(stages_[s].now, choice->ready);
        if (first && first->first <= begins) continue;
        first = std::pair(begins, s);
        chosen = *choice;
      }
      if (!first) continue;
      act(first->second, chosen);
      return true;
    }
    for (const Stage& stage : stages_)
      if (stage.weights < micro_batches_) throw InternalError("a pipeline schedule that cannot go on");
    return false;
  }

  void act(std::size_t s, const Choice& choice) {
    Stage& stage = stages_[s];
    if (choice.action != Action::backward_weight) {
      Duration most{};
      for (const Stage& other : stages_) most = std::max(most, other.idle);
      while (choice.ready > stage.now && owes_weights(stage)) {
        const Duration gap = choice.ready - stage.now;
        if (gap < costs_.stages[s].weight && stage.idle + gap <= most) break;
        run(s, Action::backward_weight, stage.now);
      }
      stage.turn_of_forward = choice.action == Action::backward_input;
    }
    run(s, choice.action, choice.ready);
  }

  const PipelineCosts& costs_;
  int micro_batches_;
  std::vector<Stage> stages_;
};
}  // namespace

std::vector<std::vector<StageTask>> automatic(const PipelineCosts& costs, int micro_batches) {
  // Whether one more forward pays, which ends after the first gradient has returned, is found by trying both.
  Player thrifty(costs, micro_batches, false), eager(costs, micro_batches, true);
  return eager.length() < thrifty.length() ? eager.take() : thrifty.take();
}
}  // namespace topsim::workloads::schedule
