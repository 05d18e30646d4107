// Micro-batches enter at both ends: stage r holds parts r and p-1-r of the model. Direction "0" below is the
// one in which the stage lies in the first half, "1" the other one.
#include <algorithm>

#include "workloads/schedule/families.hpp"

namespace topsim::workloads::schedule {
namespace {

class Builder {
 public:
  Builder(bool swapped, int half) : swapped_(swapped), half_(half) {}
  void forward(int direction, bool with_next = false) {
    add(Action::forward, forward_[direction]++, direction, with_next);
  }
  void backward(int direction) { add(Action::backward, backward_[direction]++, direction, false); }
  void input(int direction) {
    owed_.push_back({Action::backward_weight, backward_[direction], direction, false});
    add(Action::backward_input, backward_[direction]++, direction, false);
  }
  void weight() {
    const StageTask task = owed_[paid_++];
    add(task.action, task.micro_batch, task.chunk, false);
  }
  void together(int forward_direction, int backward_direction) {
    forward(forward_direction, true);
    backward(backward_direction);
  }
  [[nodiscard]] std::vector<StageTask> take() { return std::move(order_); }

 private:
  // Direction d of the stage is chunk d, or 1-d in the second half; the second chunk processes the latter
  // half of the micro-batches.
  void add(Action action, int micro_batch, int direction, bool with_next) {
    const int chunk = swapped_ ? 1 - direction : direction;
    order_.push_back({action, chunk == 0 ? micro_batch : half_ + micro_batch, chunk, with_next});
  }
  bool swapped_;
  int half_;
  int forward_[2] = {0, 0}, backward_[2] = {0, 0};
  std::vector<StageTask> order_, owed_;
  std::size_t paid_ = 0;
};
}  // namespace

std::vector<StageTask> dualpipe(int stage, int stages, int micro_batches) {
  const int h = stages / 2, q = std::min(stage, stages - 1 - stage);
  const bool middle = q == h - 1;
  Builder builder(stage >= h, micro_batches / 2);
  for (int i = 0; i < 2 * (h - q - 1); ++i) builder.forward(0);
  for (int i = 0; i < q + 1; ++i) builder.forward(0), builder.forward(1);
  for (int i = 0; i < h - q - 1; ++i) builder.input(1), builder.weight(), builder.forward(1);
  for (int i = 0; i < micro_batches / 2 - stages + q + 1; ++i) {
    if (i == 0 && middle) {
      builder.forward(0), builder.backward(1);  // nothing to overlap with yet
    } else {
      builder.together(0, 1);
    }
    builder.together(1, 0);
  }
  for (int i = 0; i < h - q - 1; ++i) builder.backward(1), builder.together(1, 0);
  // From half-way on weight gradients are postponed.
  bool put_off = false;
  for (int i = 0; i < q + 1; ++i) {
    if (i == (q + 1) / 2 && q % 2 == 1) put_off = true;
    put_off ? builder.input(1) : builder.backward(1);
    if (i == (q + 1) / 2 && q % 2 == 0) put_off = true;
    put_off ? builder.input(0) : builder.backward(0);
  }
  for (int i = 0; i < h - q - 1; ++i) builder.weight(), builder.input(0);
  for (int i = 0; i < q + 1; ++i) builder.weight();
  return builder.take();
}
}  // namespace topsim::workloads::schedule
