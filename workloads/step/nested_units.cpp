// Units inside layers (Plan::wrap_least), as PyTorch's first FSDP runs them: torch/distributed/fsdp/
// _runtime_utils.py, _exec_order_utils.py and _limiter_utils.py of PyTorch 2.6.
//
//   order      that in which forward passes end: embedding, the units of each layer, what is in none of them
//              (the model's, gathered before all; where that is the root's, it stays and is in no order),
//              head
//   gathers    are launched where they are read; each may start when the one before the last that was freed
//              has been computed with (limit_all_gathers, which makes the host wait; here the gather alone)
//   backward   a unit is gathered before its gradients are, and the one before it in the order is launched
//              (BACKWARD_PRE); its gradients are reduced when they are complete
//   recompute  of a layer begins behind the first unit of its backward pass, which is whole then. All others
//              are gathered for it and freed behind it, the one that had been launched ahead too, and are
//              gathered once more for their gradients: a checkpoint that is around units gathers them twice.
//              The last of them are freed when the first gradients are complete, not where they were read.
//   pieces     that read several units (queries, keys and values; gate and up of tensor ranks) wait for all
#include <algorithm>
#include <deque>
#include <utility>

#include "workloads/step/unit_exchange.hpp"

namespace topsim::workloads {
namespace {

using program::Phase;

constexpr int kAround = 0, kEmbedding = 1;  // places; layers' units and the head's follow

struct Ordered {
  ChunkParameters held;            // by place
  std::vector<NestedUnit> nested;  // by place; no extent at the ends
  std::vector<int> first;          // the first place of each layer, and one more
  std::vector<double> layers;      // all parameters of each
  bool stays = false;              // what is in no unit is the root's
};

Ordered in_order(const ChunkParameters& chunk, double least) {
  Ordered result;
  ChunkParameters& held = result.held;
  held.stage = chunk.stage;
  held.gradients = chunk.gradients;
  const auto add = [&](double parameters, double gradients, const NestedUnit& extent = {}) {
    held.units.push_back(parameters);
    held.unit_gradients.push_back(gradients);
    held.unit_gathers.push_back({parameters});
    held.routed_units.push_back(0);
    held.routed_unit_gradients.push_back(0);
    result.nested.push_back(extent);
  };
  add(0, 0);
  add(chunk.units.front(), chunk.unit_gradients.front());
  for (std::size_t i = 1; i + 1 < chunk.units.size(); ++i) {
    result.first.push_back(static_cast<int>(held.units.size()));
    result.layers.push_back(chunk.units[i]);
    const double trained = chunk.unit_gradients[i] / chunk.units[i];
    double rest = chunk.units[i];
    for (const NestedUnit& unit : chunk.wrapped[i]) {
      add(unit.parameters, unit.parameters * trained, unit);
      rest -= unit.parameters;
    }
    held.units[kAround] += rest;
    held.unit_gradients[kAround] += rest * trained;
  }
  result.first.push_back(static_cast<int>(held.units.size()));
  add(chunk.units.back(), chunk.unit_gradients.back());
  for (const std::size_t end : {std::size_t{kEmbedding}, held.units.size() - 1}) {
    if (held.units[end] >= least) continue;
    held.units[kAround] += std::exchange(held.units[end], 0);
    held.unit_gradients[kAround] += std::exchange(held.unit_gradients[end], 0);
  }
  held.unit_gathers[kAround] = {held.units[kAround]};
  result.stays = held.units[kAround] < least;
  return result;
}

class NestedUnits final : public DataParallel {
 public:
  NestedUnits(Ordered ordered, const Plan& plan, const ComputeModel& compute, const Slots& slots,
              StageEmitter& emitter)
      : plan_(plan),
        emitter_(emitter),
        order_(std::move(ordered)),
        exchange_({order_.held}, plan, compute, slots, emitter) {}

  void before_forward(int, int unit, int) override {
    layer_ = unit - 1;
    position_ = 0;
    if (unit == 0) {
      emitter_.flush();
      if (freed_by_ == StageEmitter::kNoOp) freed_by_ = emitter_.last_compute();
      use(kAround, Phase::forward);
      use(kEmbedding, Phase::forward);
    } else if (is_head()) {
      use(head(), Phase::forward);
    }
  }
  void reads(int, Weights, double parameters, int) override {
    if (layer_ >= 0 && !is_head()) advance(parameters, end(), Phase::forward);
  }
  void after_forward(int, int unit) override {
    if (unit == 0) return free(kEmbedding);
    if (is_head()) return free(head());
    for (int place = begin(); place < end(); ++place) free(place);
    if (unit == static_cast<int>(order_.layers.size()) && !order_.stays) free(kAround);
  }

  void before_backward(int, int unit) override {
    layer_ = unit - 1;
    position_ = 0;
    if (is_head()) {
      piece_ = 0;
      return enter(head());
    }
    if (unit == 0) return enter(kEmbedding);
    if (unit == static_cast<int>(order_.layers.size())) enter(kAround);
    entered_ = end();
    enter_what_is_next();
  }
  void reads_again(int, Weights, double parameters) override {
    if (layer_ >= 0 && !is_head()) advance(parameters, entered_, Phase::backward);
  }
  void completes(int, Weights, double parameters, bool last) override {
    ++piece_;
    if (layer_ < 0 || is_head()) return;
    if (!completing_) end_recompute();
    position_ += parameters;
    for (int place = end() - 1; place >= entered_; --place)
      if (position_ > size() - order_.nested[at(place)].begin - 0.5) leave(place, last);
    enter_what_is_next();
  }
  void after_backward(int, int unit, bool last) override {
    if (is_head()) return leave(head(), last);
    if (unit == 0) {
      leave(kEmbedding, last);
      return leave(kAround, last);  // the embedding may be a part of it
    }
    for (int place = end() - 1; place >= begin(); --place) {
      enter(place);
      leave(place, last);
    }
    completing_ = false;
    if (unit == 1 && order_.held.units[kEmbedding] > 0) leave(kAround, last);
  }
  void end_of_backward(int, bool last) override {
    std::fill(left_.begin(), left_.end(), false);
    if (reduces(last)) exchange_.end_pass();
  }
  void finish_gradients() override { exchange_.finish(); }
  void after_optimizer() override {}
  std::span<const std::uint32_t> host_copies() const override { return exchange_.host_copies(); }

 private:
  static std::size_t at(int place) { return static_cast<std::size_t>(place); }
  [[nodiscard]] bool is_head() const { return layer_ == static_cast<int>(order_.layers.size()); }
  [[nodiscard]] int head() const { return static_cast<int>(order_.held.units.size()) - 1; }
  [[nodiscard]] int begin() const { return order_.first[at(layer_)]; }
  [[nodiscard]] int end() const { return order_.first[at(layer_) + 1]; }
  [[nodiscard]] double size() const { return order_.layers[at(layer_)]; }
  [[nodiscard]] bool reduces(bool last) const { return last || plan_.reduce_every_micro_batch; }
  UnitExchange::State& state(int place) { return UnitExchange::at(exchange_.dense, 0, place); }

  // The unit whose forward pass ended before: of the first layer's first that is the embedding's; what is in
  // none comes behind the last layer. -1: there is none.
  [[nodiscard]] int before(int place) const {
    const int last_layer = order_.first.back() - 1;
    if (place == head()) return order_.stays ? last_layer : kAround;
    if (place == kAround) return last_layer;
    return place == kEmbedding ? -1 : place - 1;
  }

  void launch(int place) {
    if (state(place).whole || state(place).gather != StageEmitter::kNoOp) return;
    if (exchange_.parameters_of(exchange_.dense, 0, place) <= 0) return;
    if (freed_.size() >= 2) {  // _FreeEventQueue: at most two gathers ahead
      freed_by_ = freed_.front();
      freed_.pop_front();
    }
    exchange_.launch(exchange_.dense, 0, place, freed_by_);
  }
  void use(int place, Phase phase) {
    launch(place);
    exchange_.wait(exchange_.dense, 0, place, phase);
  }
  void free(int place) {
    if (!plan_.shards.reshard_after_forward || !state(place).whole) return;
    reshard(place);
  }
  void reshard(int place) {
    emitter_.flush();
    state(place) = {};
    freed_.push_back(emitter_.last_compute());
  }

  // A forward pass goes on to the next parameters: frees units behind it, gathers those that it reads, up to
  // place `until`.
  void advance(double parameters, int until, Phase phase) {
    for (int place = begin(); place < until; ++place) {
      const NestedUnit& unit = order_.nested[at(place)];
      if (unit.end < position_ + 0.5) free(place);
    }
    for (int place = begin(); place < until; ++place) {
      const NestedUnit& unit = order_.nested[at(place)];
      if (unit.begin < position_ + parameters - 0.5 && unit.end > position_ + 0.5) use(place, phase);
    }
    position_ += parameters;
    recomputes_ = phase == Phase::backward;
  }
  void end_recompute() {
    for (int place = begin(); recomputes_ && place < entered_; ++place) free(place);
    recomputes_ = false;
    completing_ = true;
    position_ = 0;
  }

  // Before a unit's gradients. It is gathered if it was not, and the one before it is on its way.
  void enter(int place) {
    if (left_[at(place)]) return;
    use(place, Phase::backward);
    const int next = before(place);
    if (plan_.overlap_param_gather && next >= 0 && !left_[at(next)]) launch(next);
  }
  // Units that the next products of the backward pass read.
  void enter_what_is_next() {
    const std::vector<ChunkParameters::Gradient>& pieces = order_.held.gradients;
    const double done = completing_ ? position_ : 0;
    const double next = at(piece_) < pieces.size() ? pieces[at(piece_)].parameters : 0;
    const double until = size() - done - next;
    while (entered_ > begin() && order_.nested[at(entered_ - 1)].end > until + 0.5) enter(--entered_);
  }
  void leave(int place, bool last) {
    if (left_[at(place)] || !reduces(last)) return;
    left_[at(place)] = true;
    if (state(place).whole) reshard(place);
    exchange_.dense.ready += exchange_.gradients_of(exchange_.dense, 0, place);
    exchange_.reduce(exchange_.dense, last);
  }

  const Plan& plan_;
  StageEmitter& emitter_;
  Ordered order_;
  UnitExchange exchange_;
  std::deque<std::uint32_t> freed_;               // by which op, in the order in which units were freed
  std::uint32_t freed_by_ = StageEmitter::kNoOp;  // the last of those that a gather has waited for
  std::vector<bool> left_ = std::vector<bool>(order_.held.units.size());  // their gradients are reduced
  int layer_ = 0;                                                         // being computed; -1: the embedding
  double position_ = 0;  // parameters of it that were read, or whose gradients are complete
  int piece_ = 0;        // of the backward pass
  int entered_ = 0;      // the first place of the layer whose gradients have begun
  bool recomputes_ = false, completing_ = false;
};
}  // namespace

std::unique_ptr<DataParallel> make_nested_units(std::vector<ChunkParameters> chunks, const Plan& plan,
                                                const ComputeModel& compute, const Slots& slots,
                                                StageEmitter& emitter) {
  return std::make_unique<NestedUnits>(in_order(chunks.front(), plan.wrap_least), plan, compute, slots,
                                       emitter);
}
}  // namespace topsim::workloads
