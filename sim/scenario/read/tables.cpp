#include "sim/scenario/read/tables.hpp"

#include "sim/network/factory.hpp"
#include "topology/spec_reader.hpp"
#include "workloads/fields.hpp"

namespace topsim::scenario {
namespace {
// "pipelined; packet: steps; ..."
std::string usual_forms() {
  std::string text(name_of(CollectiveForm::pipelined));
  for (const network::Model& model : network::models())
    if (const CollectiveForm form = executor::usual_form(model); form != CollectiveForm::pipelined)
      text += fmt::format("; {}: {}", model.name, name_of(form));
  return text;
}

// The name of a device or link, or the number of a rank.
class TargetCodec final : public config::Codec<std::string> {
 public:
  bool accepts(config::Kind kind) const override { return either_.accepts(kind); }
  void read(const config::Node& node, std::string& out, config::Reader& reader) const override {
    std::variant<std::string, int> value;
    either_.read(node, value, reader);
    const int* rank = std::get_if<int>(&value);
    out = rank != nullptr ? "rank " + std::to_string(*rank) : std::get<std::string>(value);
  }
  config::Value write(const std::string& value) const override { return either_.write(value); }
  config::Value schema(config::Definitions& definitions) const override {
    return either_.schema(definitions);
  }
  std::string expects() const override { return either_.expects(); }

 private:
  config::detail::EitherCodec<std::string, int> either_{config::codec_for<std::string>(),
                                                        config::codec_for<int>()};
};

// Checks for keys that the kind of fault does not use, and for those that it needs.
void check_fault(const FaultSpec& fault, const config::Node& node, config::Reader& reader) {
  const bool flaps = fault.kind == FaultKind::link_flapping;
  for (const char* key : {"period", "down"}) {
    const bool given = std::string_view(key) == "period" ? fault.period.has_value() : fault.down.has_value();
    if (given && !flaps)
      reader.problem(node.find(key), std::string("only link_flapping has a \"") + key + '"', {},
                     "leave it out");
    if (!given && flaps)
      reader.problem(node, std::string("a flapping link needs \"") + key + '"', {},
                     "e.g. \"for\": \"10 s\", \"period\": \"2 s\", \"down\": \"200 ms\"");
  }
  if (fault.lasts && *fault.lasts == Duration{})
    reader.problem(node.find("for"), "a fault of 0 s changes nothing", {},
                   "a duration above 0, or leave \"for\" out where it lasts to the end");
  if (flaps && !fault.lasts)
    reader.problem(node, "a flapping link needs \"for\": how long it goes on", {}, "e.g. \"for\": \"10 s\"");
  if (fault.period && fault.down && *fault.down >= *fault.period)
    reader.problem(node.find("down"), "the outages last longer than the period between them", {},
                   "a shorter one, or link_down");
  if (fault.factor && !fault.has_factor())
    reader.problem(node.find("factor"), "only link_degraded and gpu_slow have a \"factor\"", {},
                   "leave it out");
}
}  // namespace

const config::Object<Scenario>& table(config::Type<Scenario>) {
  static const auto object =
      config::Object<Scenario>("scenario", "A cluster, a workload on it, and how to simulate them")
          .field("description", &Scenario::description, "What this scenario is, in one sentence")
          .field("topology", &Scenario::topology, "The cluster", config::required(),
                 config::example(R"({"node": "hgx-h100", "nodes": 8})"))
          .field("workload", &Scenario::workload, "What it computes; a look at the topology needs none")
          .field("network", &Scenario::network, "How messages share links")
          .field("run", &Scenario::run, "How many steps, which seed")
          .field("faults", &Scenario::faults, "What breaks, and when")
          .field("cost", &Scenario::cost, "Prices that override the catalogue's")
          .field("reliability", &Scenario::reliability, "Goodput of a run of days: failures and checkpoints");
  return object;
}

const config::Object<NetworkSpec>& table(config::Type<NetworkSpec>) {
  static const auto object =
      config::Object<NetworkSpec>("network", "How messages share links")
          .field("model", &NetworkSpec::model, "Network model", config::one_of(network::model_names()))
          .field("collectives", &NetworkSpec::collectives, "What a collective becomes on the wire",
                 config::names<CollectiveForm>(
                     {{"pipelined", CollectiveForm::pipelined,
                       "one activity that keeps its links busy together"},
                      {"steps", CollectiveForm::steps, "every chunk of every step a message"},
                      {"hops", CollectiveForm::hops,
                       "every hop one message of all its bytes, at the rate of all its channels"}}),
                 config::default_text(usual_forms()))
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
          .field(
              "kind", &FaultSpec::kind, "What happens", config::required(),
              config::names<FaultKind>(
                  {{"link_down", FaultKind::link_down, "carries nothing; other paths are taken"},
                   {"link_degraded", FaultKind::link_degraded, "has \"factor\" of its capacity left"},
                   {"link_flapping", FaultKind::link_flapping, "is down for \"down\" every \"period\""},
                   {"gpu_slow", FaultKind::gpu_slow, "computes at \"factor\" of its speed"},
                   {"nic_down", FaultKind::nic_down, "all its cables down; other NICs of the node take over"},
                   {"switch_down", FaultKind::switch_down, "all cables of a switch of the fabric down"},
                   {"gpu_down", FaultKind::gpu_down, "lost: the job restarts, as \"reliability\" says"}}))
          .field(
              "target", &FaultSpec::target,
              "Device or link it happens to, as topsim topo show names it; an accelerator also by its rank",
              std::make_shared<const TargetCodec>(), config::required(), config::example("\"node0/nic1\""))
          .field("at", &FaultSpec::at, "When, from the beginning of the run")
          .field("for", &FaultSpec::lasts, "How long", config::default_text("to the end"))
          .field("factor", &FaultSpec::factor, "Share of the capacity or speed that is left",
                 config::between(0, 1), config::default_text("0.5"))
          .field("failover", &FaultSpec::failover,
                 "down: how long until other paths carry what was on the way; from 0 to the end: at once")
          .field("period", &FaultSpec::period, "flapping: from one outage to the next", config::positive())
          .field("down", &FaultSpec::down, "flapping: how long each outage lasts", config::positive())
          .check(check_fault);
  return object;
}
}  // namespace topsim::scenario

namespace topsim::collective {
namespace {
// NCCL's own spelling, which results and bench print, is read too: "Ring", "LL128".
template <class E>
config::detail::NamesCodec<E>::Entry as_nccl(std::string name, E value) {
  return {std::move(name), value, {}, std::string(name_of(value))};
}
}  // namespace
const config::Object<Overrides>& table(config::Type<Overrides>) {
  static const auto object =
      config::Object<Overrides>("nccl", "Choices forced on NCCL's tuner")
          .field("algorithm", &Overrides::algorithm, "NCCL_ALGO", config::default_text("the tuner's"),
                 config::names<Algorithm>(
                     {as_nccl("ring", Algorithm::ring), as_nccl("tree", Algorithm::tree),
                      as_nccl("collnet-direct", Algorithm::collnet_direct),
                      as_nccl("collnet-chain", Algorithm::collnet_chain), as_nccl("nvls", Algorithm::nvls),
                      as_nccl("nvls-tree", Algorithm::nvls_tree), as_nccl("pat", Algorithm::pat)}))
          .field("protocol", &Overrides::protocol, "NCCL_PROTO", config::default_text("the tuner's"),
                 config::names<Protocol>({as_nccl("ll", Protocol::ll), as_nccl("ll128", Protocol::ll128),
                                          as_nccl("simple", Protocol::simple)}))
          .field("channels", &Overrides::channels, "Number of channels", config::between(1, 64),
                 config::default_text("the tuner's"))
          .field("nvls", &Overrides::nvls, "NVLink SHARP (NCCL_NVLS_ENABLE)")
          .field("sharp", &Overrides::sharp, "In-network reduction (NCCL_COLLNET_ENABLE)")
          .field("pxn", &Overrides::pxn, "Reach a NIC through the GPU beside it (NCCL_PXN_DISABLE=0)")
          .field("p2p_level", &Overrides::p2p_level,
                 "The furthest that GPUs of a box write to each other, beyond it through host memory "
                 "(NCCL_P2P_LEVEL): NVLink, one PCIe switch, several, a socket, any",
                 config::default_text("pxb; sys for two GPUs beside AMD's processors"),
                 config::names<PeerLevel>({{"nvl", PeerLevel::nvl},
                                           {"pix", PeerLevel::pix},
                                           {"pxb", PeerLevel::pxb},
                                           {"phb", PeerLevel::phb},
                                           {"sys", PeerLevel::sys}}))
          .field(
              "custom_all_reduce", &Overrides::custom_all_reduce,
              "All-reduces of a box by serving engines' kernels (vLLM's), one shot or two, where they would",
              config::default_text("inference's are"))
          .field("socket_nthreads", &Overrides::socket_threads,
                 "TCP: threads of the host that copy for each connection (NCCL_SOCKET_NTHREADS); AWS' NICs "
                 "have 2, Google's 4",
                 config::between(0, 16), config::default_text("0, the accelerator's proxy copies for all"))
          .field("gpus_per_thread", &Overrides::gpus_per_thread,
                 "bench: GPUs of a node for which one thread of the host launches, one after the other "
                 "(nccl-tests -g); frameworks have a process for each",
                 config::between(1, 1024), config::default_text("1"))
          .field("buffsize", &Overrides::buffsize,
                 "Buffer of a channel under Simple, eight slots of a chunk (NCCL_BUFFSIZE)",
                 config::between(64 << 10, 1 << 30), config::default_text("4 MiB; AWS' plugin sets 8 MiB"))
          .field("nvls_chunksize", &Overrides::nvls_chunksize,
                 "Largest chunk of sums in the NVSwitch (NCCL_NVLS_CHUNKSIZE)",
                 config::between(16 << 10, 64 << 20),
                 config::default_text("128 KiB; AWS' plugin sets 512 KiB, Google's profiles too"))
          .field("nvlstree_max_chunksize", &Overrides::nvlstree_max_chunksize,
                 "The same between nodes (NCCL_NVLSTREE_MAX_CHUNKSIZE)", config::between(16 << 10, 64 << 20),
                 config::default_text("64 KiB from four nodes on; AWS' plugin sets 512 KiB"));
  return object;
}
}  // namespace topsim::collective
