#include "sim/executor/step_messages.hpp"

namespace topsim::executor {

StepOrder order_of(const collective::StepPlan& plan) {
  const std::size_t count = plan.messages.size();
  StepOrder order;
  order.missing.resize(count);
  order.followers_begin.assign(count + 1, 0);
  const auto before = [&](const collective::StepMessage& message) {
    return std::span(plan.after).subspan(message.after_begin, message.after_count);
  };
  for (std::size_t m = 0; m < count; ++m) {
    order.missing[m] = plan.messages[m].after_count;
    for (const std::uint32_t earlier : before(plan.messages[m])) ++order.followers_begin[earlier + 1];
  }
  for (std::size_t m = 0; m < count; ++m) order.followers_begin[m + 1] += order.followers_begin[m];
  order.followers.resize(order.followers_begin.back());
  std::vector<std::uint32_t> fill(order.followers_begin.begin(), order.followers_begin.end() - 1);
  for (std::uint32_t m = 0; m < count; ++m)
    for (const std::uint32_t earlier : before(plan.messages[m])) order.followers[fill[earlier]++] = m;
  return order;
}

NamedWay way_over(std::span<const LinkId> links) {
  NamedWay named;
  for (const LinkId link : links) {
    named.usage.push_back({link.value, 1});
    named.way.push_back(link.value);
  }
  return named;
}

network::Transfer transfer_of(const collective::StepMessage& message, std::span<const DeviceId> ends,
                              bool allow_pxn) {
  network::Transfer transfer;
  transfer.bytes = static_cast<double>(message.bytes.value());
  transfer.rate_cap = message.rate_cap.value();
  transfer.latency = message.latency;
  transfer.from = ends[message.from];
  transfer.to = ends[message.to];
  transfer.connection = message.channel;
  transfer.slot = message.slice;
  transfer.from_nic = message.from_nic, transfer.to_nic = message.to_nic;
  transfer.allow_pxn = allow_pxn;
  transfer.line = message.line;
  return transfer;
}
}  // namespace topsim::executor
