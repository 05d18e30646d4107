#include "workloads/step/offload.hpp"

namespace topsim::workloads {
namespace {
constexpr double kGradientBytes = 4, kAdamBytes = 28, kStateBytes = 12;
}

std::uint32_t offload_gradients(StageEmitter& emitter, double elements, std::span<const std::uint32_t> after,
                                bool follows_compute) {
  return emitter.host_copy(kToHost, "gradients to host", elements * kGradientBytes, after, follows_compute);
}

void host_optimizer(StageEmitter& emitter, double parameters, const Plan& plan,
                    std::span<const std::uint32_t> copies) {
  const bool nvme = plan.offload.to == Offload::nvme;
  std::vector<std::uint32_t> after(copies.begin(), copies.end());
  const auto work = [&](const char* label, double bytes, double rate) {
    after = {emitter.host_work(label, from_seconds(bytes / rate), after)};
  };
  if (nvme) work("read optimizer states", parameters * kStateBytes, plan.offload.nvme_read);
  work("host optimizer", parameters * kAdamBytes, plan.offload.adam_rate);
  if (nvme) work("write optimizer states", parameters * kStateBytes, plan.offload.nvme_write);
  if (plan.offload.parameters) {
    emitter.wait_for(after.front());  // parameters stay on the host until they are gathered
  } else {
    emitter.wait_for(emitter.host_copy(kFromHost, "parameters from host",
                                       parameters * plan.gathered_parameter_bytes, after, false));
  }
  emitter.join();
}
}  // namespace topsim::workloads
