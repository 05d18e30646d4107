#include "sim/scenario/tables.hpp"

#include "sim/network/factory.hpp"
#include "topology/spec_reader.hpp"
#include "workloads/fields.hpp"

namespace topsim::scenario {
namespace {
std::vector<std::string> network_names() {
  std::vector<std::string> names;
  for (const network::Model& model : network::models()) names.emplace_back(model.name);
  return names;
}
}  // namespace

const config::Object<Scenario>& table(config::Type<Scenario>) {
  static const auto object =
      config::Object<Scenario>("scenario", "A cluster, a workload on it, and how to simulate them")
          .field("description", &Scenario::description, "What this scenario is, in one sentence")
          .field("topology", &Scenario::topology, "The cluster", config::required())
          .field("workload", &Scenario::workload, "What it computes", config::required())
          .field("network", &Scenario::network, "How messages share links")
          .field("run", &Scenario::run, "How many steps, which seed")
          .field("faults", &Scenario::faults, "What breaks, and when")
          .field("cost", &Scenario::cost, "Prices that override the catalogue's");
  return object;
}

const config::Object<NetworkSpec>& table(config::Type<NetworkSpec>) {
  static const auto object =
      config::Object<NetworkSpec>("network", "How messages share links")
          .field("model", &NetworkSpec::model, "Network model", config::one_of(network_names()))
          .field(
              "collectives", &NetworkSpec::collectives, "What a collective becomes on the wire",
              config::names<CollectiveForm>(
                  {{"pipelined", CollectiveForm::pipelined,
                    "one activity that keeps its links busy together"},
                   {"steps", CollectiveForm::steps, "every chunk of every step a message"},
                   {"hops", CollectiveForm::hops,
                    "every hop one message of all its bytes; no protocol limits, what links alone allow"}}))
          .field("contention", &NetworkSpec::contention,
                 "What flows that meet on a RoCE or InfiniBand port lose",
                 config::names<ContentionForm>(
                     {{"calibrated", ContentionForm::calibrated,
                       "what packets lose, by the table of topsim calibrate (flow model)"},
                      {"ideal", ContentionForm::ideal, "nothing"}}))
          .field("packet", &NetworkSpec::packet, "Settings of the packet model")
          .field("nccl", &NetworkSpec::nccl, "Forces what the NCCL tuner would choose");
  return object;
}

const config::Object<RunSpec>& table(config::Type<RunSpec>) {
  static const auto object =
      config::Object<RunSpec>("run", "How long to simulate")
          .field("steps", &RunSpec::steps, "Measured training steps", config::between(1, 10'000))
          .field("warmup", &RunSpec::warmup, "Steps before the measured ones", config::between(0, 10'000))
          .field("seed", &RunSpec::seed, "Seed of everything drawn at random (ECMP hashes, placement)");
  return object;
}

const config::Object<FaultSpec>& table(config::Type<FaultSpec>) {
  static const auto object =
      config::Object<FaultSpec>("fault", "Something that breaks during the run")
          .field("kind", &FaultSpec::kind, "What happens", config::required(),
                 config::names<FaultKind>({{"link_down", FaultKind::link_down},
                                           {"link_degraded", FaultKind::link_degraded},
                                           {"gpu_slow", FaultKind::gpu_slow},
                                           {"nic_down", FaultKind::nic_down},
                                           {"gpu_down", FaultKind::gpu_down}}))
          .field("target", &FaultSpec::target, "Device or link it happens to, as topsim topo show names it",
                 config::required(), config::example("\"node0/nic1\""))
          .field("at", &FaultSpec::at, "When, from the beginning of the run")
          .field("for", &FaultSpec::lasts, "How long", config::default_text("to the end"))
          .field("factor", &FaultSpec::factor, "Share of the capacity or speed that is left",
                 config::between(0, 1));
  return object;
}
}  // namespace topsim::scenario

namespace topsim::collective {
const config::Object<Overrides>& table(config::Type<Overrides>) {
  static const auto object =
      config::Object<Overrides>("nccl", "Choices forced on NCCL's tuner")
          .field("algorithm", &Overrides::algorithm, "NCCL_ALGO", config::default_text("the tuner's"),
                 config::names<Algorithm>({{"ring", Algorithm::ring},
                                           {"tree", Algorithm::tree},
                                           {"collnet-direct", Algorithm::collnet_direct},
                                           {"collnet-chain", Algorithm::collnet_chain},
                                           {"nvls", Algorithm::nvls},
                                           {"nvls-tree", Algorithm::nvls_tree},
                                           {"pat", Algorithm::pat}}))
          .field("protocol", &Overrides::protocol, "NCCL_PROTO", config::default_text("the tuner's"),
                 config::names<Protocol>(
                     {{"ll", Protocol::ll}, {"ll128", Protocol::ll128}, {"simple", Protocol::simple}}))
          .field("channels", &Overrides::channels, "Number of channels", config::between(1, 64),
                 config::default_text("the tuner's"))
          .field("nvls", &Overrides::nvls, "NVLink SHARP (NCCL_NVLS_ENABLE)")
          .field("sharp", &Overrides::sharp, "In-network reduction (NCCL_COLLNET_ENABLE)")
          .field("pxn", &Overrides::pxn, "Reach a NIC through the GPU beside it (NCCL_PXN_DISABLE=0)");
  return object;
}
}  // namespace topsim::collective
