#include "workloads/step/offload.hpp"

namespace topsim::workloads {
std::uint32_t offload_gradients(StageEmitter& emitter, double elements, const Plan& plan,
                                std::span<const std::uint32_t> after, bool follows_compute) {
  return emitter.host_copy(kToHost, "gradients to host", elements * plan.offload.gradient_bytes, after,
                           follows_compute);
}

std::uint32_t exchange_gradients(StageEmitter& emitter, const Plan& plan, double elements,
                                 std::span<const std::uint32_t> after, bool follows_compute,
                                 MicroBatch which) {
  const bool stage3 = plan.offload.sums == GradientSums::in_each;
  const bool exchanges =
      stage3 || (plan.offload.sums == GradientSums::between && !(which.first && which.last));
  if (!exchanges) {
    const std::uint32_t copy = offload_gradients(emitter, elements, plan, after, follows_compute);
    if (plan.offload.sums != GradientSums::by_host || which.first) return copy;
    const double bytes = 3 * elements * plan.offload.gradient_bytes;  // reads both, writes the sum
    const std::uint32_t added = emitter.host_work(
        "gradients added on the host", from_seconds(bytes / plan.offload.adam_rate), std::span(&copy, 1));
    emitter.wait_for(added);
    return added;
  }
  std::vector<std::uint32_t> before(after.begin(), after.end());
  const double narrow = elements * bytes_of(plan.activations);
  const auto copy = [&](std::uint8_t direction, const char* label, double bytes) {
    before = {emitter.host_copy(direction, label, bytes, before, follows_compute)};
    follows_compute = false;
  };
  if (stage3 && which.first) copy(kToHost, "gradients to host", narrow);
  if (stage3 || !which.first) copy(kFromHost, "gradients from host", narrow);
  if (stage3 ? !which.first : !which.last) copy(kToHost, "gradients to host", narrow);
  if (which.last) copy(kToHost, "gradients to host", elements * plan.offload.gradient_bytes);
  return before.front();
}

void host_optimizer(StageEmitter& emitter, double parameters, const Plan& plan,
                    std::span<const std::uint32_t> copies) {
  const bool nvme = plan.offload.to == Offload::nvme;
  const double states = plan.optimizer_bytes + 2 * plan.moment_bytes;
  std::vector<std::uint32_t> after(copies.begin(), copies.end());
  const auto work = [&](const char* label, double bytes, double rate) {
    after = {emitter.host_work(label, from_seconds(bytes / rate), after)};
  };
  if (nvme) work("read optimizer states", parameters * states, plan.offload.nvme_read);
  work("host optimizer", parameters * (plan.offload.gradient_bytes + 2 * states), plan.offload.adam_rate);
  if (nvme) work("write optimizer states", parameters * states, plan.offload.nvme_write);
  if (plan.offload.parameters) {
    emitter.wait_for(after.front());  // parameters stay on the host until they are gathered
  } else {
    emitter.wait_for(emitter.host_copy(kFromHost, "parameters from host",
                                       parameters * plan.gathered_parameter_bytes, after, false));
  }
  emitter.join();
}
}  // namespace topsim::workloads
