// The field tables of the sections that are defined here; topology and workload have their own.
#pragma once

#include "sim/config/object.hpp"
#include "sim/scenario/scenario.hpp"

namespace topsim::scenario {
const config::Object<Scenario>& table(config::Type<Scenario>);
const config::Object<NetworkSpec>& table(config::Type<NetworkSpec>);
const config::Object<PacketSection>& table(config::Type<PacketSection>);
const config::Object<RunSpec>& table(config::Type<RunSpec>);
const config::Object<FaultSpec>& table(config::Type<FaultSpec>);
}  // namespace topsim::scenario

namespace topsim::collective {
const config::Object<Overrides>& table(config::Type<Overrides>);
}

namespace topsim::network::packet {
const config::Object<SwitchBuffer>& table(config::Type<SwitchBuffer>);
const config::Object<Pfc>& table(config::Type<Pfc>);
const config::Object<Ecn>& table(config::Type<Ecn>);
const config::Object<CongestionControl>& table(config::Type<CongestionControl>);
const config::Object<Dcqcn>& table(config::Type<Dcqcn>);
const config::Object<Hpcc>& table(config::Type<Hpcc>);
const config::Object<Timely>& table(config::Type<Timely>);
const config::Object<Dctcp>& table(config::Type<Dctcp>);
const config::Object<InfinibandCc>& table(config::Type<InfinibandCc>);
const config::Object<VirtualLanes>& table(config::Type<VirtualLanes>);
const config::Object<Loss>& table(config::Type<Loss>);
}  // namespace topsim::network::packet
