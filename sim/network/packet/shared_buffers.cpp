// Regions that share nothing but the buffer of a switch. What one has in it lowers the thresholds of the
// other (buffers.cpp), which makes no difference as long as all thresholds are far: then the regions are
// simulated apart. As soon as one could be reached, they are joined, and simulated together from their
// beginning.
#include <algorithm>

#include "sim/network/packet/episodes.hpp"

namespace topsim::network::packet {

void Episodes::share_buffers(Region& region, PortIndex port) {
  const PortSpec& spec = graph_.ports[port];
  if (spec.flow_control == FlowControl::credit) return;
  // A packet counts whole as soon as its first byte is there.
  const double soon =
      spec.rate.value() * seconds(kMostAhead) + static_cast<double>(planner_.largest_packet().value());
  const auto [row, fresh] = region.buffers.try_emplace(spec.to);
  row->second.all += soon;
  row->second.by_one_port = std::max(row->second.by_one_port, soon);
  if (!fresh) return;
  sharers_[spec.to].push_back(&region);
  if (sharers_[spec.to].size() > 1) contended_.insert(spec.to);
}

void Episodes::stop_sharing(const Region& region) {
  for (const auto& [device, inflow] : region.buffers) {
    std::erase(sharers_[device], &region);
    if (sharers_[device].size() < 2) contended_.erase(device);
  }
}

// So far; of a record: in all of it.
BufferUse Episodes::use_of(const Region& region, DeviceIndex device) const {
  if (region.workplace) return region.engine().buffer_use(device);
  const std::uint32_t local = region.names.local_device(device);
  if (region.mode == Region::Mode::replayed) {
    const std::vector<BufferUse>& buffers = region.followed->buffers;
    return local < buffers.size() ? buffers[local] : BufferUse{};
  }
  if (region.mode == Region::Mode::simulated || !region.leader->workplace) return {};
  const std::vector<DeviceIndex>& devices = region.leader->names.devices();
  return local < devices.size() ? region.leader->engine().buffer_use(devices[local]) : BufferUse{};
}

// Whether no threshold can be reached, even if all comes in that may have come by the time up to which some
// regions have been simulated and others not.
bool Episodes::fit(DeviceIndex device) const {
  double used = 0, fullest = 0;
  for (const Region* region : sharers_[device]) {
    const BufferUse use = use_of(*region, device);
    const Region::Inflow& inflow = region->buffers.at(device);
    used += static_cast<double>(use.used) + inflow.all;
    fullest = std::max(fullest, use.fullest + inflow.by_one_port);
  }
  if (spec_.pfc.xoff && fullest >= static_cast<double>(spec_.pfc.xoff->value())) return false;
  const double asked = spec_.pfc.xoff ? 0 : fullest / spec_.pfc.alpha;  // that much must be free
  return used + asked < static_cast<double>(planner_.shared_buffer(device).value());
}

void Episodes::keep_apart(const Region& region) {
  const Region* together = &region;
  const auto is_full = [&](const auto& row) { return contended_.count(row.first) > 0 && !fit(row.first); };
  for (;;) {
    const auto full = std::find_if(together->buffers.begin(), together->buffers.end(), is_full);
    if (full == together->buffers.end()) return;
    together = &join_sharers(full->first);
  }
}

bool Episodes::keep_all_apart() {
  for (const DeviceIndex device : contended_) {
    if (fit(device)) continue;
    join_sharers(device);
    return false;
  }
  return true;
}

Region& Episodes::join_sharers(DeviceIndex device) {
  std::vector<std::uint32_t> numbers;
  for (const Region* region : sharers_[device]) numbers.push_back(region->number);
  std::sort(numbers.begin(), numbers.end());
  return join(numbers);
}
}  // namespace topsim::network::packet
