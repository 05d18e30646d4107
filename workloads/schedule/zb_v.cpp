// Two chunks per stage in the shape of a V: stage r holds parts r and 2p-1-r of the model, so the loss is
// computed on the stage where the first chunks end. The order is defined for at least 2p-1 micro-batches;
// with fewer, the missing ones are skipped.
#include <algorithm>

#include "workloads/schedule/families.hpp"

namespace topsim::workloads::schedule {
namespace {

class Builder {
 public:
  explicit Builder(int micro_batches) : micro_batches_(micro_batches) {}
  void forward(int chunk) { add(Action::forward, forward_[chunk]++, chunk); }
  void input(int chunk) { add(Action::backward_input, input_[chunk]++, chunk); }
  void weight(int chunk) { add(Action::backward_weight, weight_[chunk]++, chunk); }
  [[nodiscard]] int forwards(int chunk) const { return forward_[chunk]; }
  [[nodiscard]] int inputs(int chunk) const { return input_[chunk]; }
  [[nodiscard]] int weights(int chunk) const { return weight_[chunk]; }
  [[nodiscard]] std::vector<StageTask> take() { return std::move(order_); }

 private:
  void add(Action action, int micro_batch, int chunk) {
    if (micro_batch < micro_batches_) order_.push_back({action, micro_batch, chunk});
  }
  int micro_batches_;
  int forward_[2] = {0, 0}, input_[2] = {0, 0}, weight_[2] = {0, 0};
  std::vector<StageTask> order_;
};
}  // namespace

std::vector<StageTask> zb_v(int stage, int stages, int micro_batches) {
  const int n = std::max(2 * stages - 1, micro_batches);
  Builder builder(micro_batches);
  for (int i = 0; i < 2 * (stages - stage) - 1; ++i) builder.forward(0);
  for (int i = 0; i < stage; ++i) builder.forward(1), builder.forward(0);
  for (int i = 0; i < stages - stage; ++i) builder.forward(1), builder.input(1), builder.weight(1);
  while (builder.forwards(1) < n || builder.forwards(0) < n) {
    if (builder.forwards(0) < n) builder.forward(0);
    builder.input(0), builder.weight(0);
    builder.forward(1), builder.input(1), builder.weight(1);
  }
  for (int i = 0; i < stage; ++i) builder.input(0), builder.input(1);
  for (int i = 0; i < stages - stage; ++i) builder.input(0), builder.weight(0);
  while (builder.weights(1) < builder.inputs(1)) builder.weight(1);
  while (builder.weights(0) < builder.inputs(0)) builder.weight(0);
  return builder.take();
}
}  // namespace topsim::workloads::schedule
