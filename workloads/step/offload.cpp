#include "workloads/step/offload.hpp"

namespace topsim::workloads {
std::uint32_t offload_gradients(StageEmitter& emitter, double elements, const Plan& plan,
                                std::span<const std::uint32_t> after, bool follows_compute) {
  return emitter.host_copy(kToHost, "gradients to host", elements * plan.offload.gradient_bytes, after,
                           follows_compute);
}

void host_optimizer(StageEmitter& emitter, double parameters, const Plan& plan,
                    std::span<const std::uint32_t> copies) {
  const bool nvme = plan.offload.to == Offload::nvme;
  const double states = 3 * plan.optimizer_bytes;
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
