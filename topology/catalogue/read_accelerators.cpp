#include "topology/catalogue/figure.hpp"
#include "topology/catalogue/gemm.hpp"
#include "topology/catalogue/hardware_file.hpp"
#include "topology/catalogue/impl.hpp"

namespace topsim::topology {

static const config::Object<GemmConstants>& table(config::Type<GemmConstants>) {
  static const auto object =
      config::Object<GemmConstants>("gemm", "Constants of the GEMM model")
          .field("peak_fraction", &GemmConstants::peak_fraction,
                 "pf: share of the dense rate that a perfect tile reaches", figure<double>())
          .field("k_offset", &GemmConstants::k_offset,
                 "k0: depth that each tile pays beside its own, for prologue and epilogue", figure<double>())
          .field("memory_fraction", &GemmConstants::memory_fraction,
                 "beta: share of the memory bandwidth that operands stream at", figure<double>())
          .field("fixed", &GemmConstants::fixed, "t0: of each kernel", figure<Duration>())
          .field("tile_penalty", &GemmConstants::tile_penalty,
                 "c: loss of small tiles, e = pf / (1 + c (1/tm + 1/tn))", figure<double>());
  return object;
}

static const config::Object<Unmeasured>& table(config::Type<Unmeasured>) {
  static const auto object =
      config::Object<Unmeasured>("unmeasured",
                                 "Shares that accelerators reach which neither their entry nor, of eager "
                                 "kernels, their relative has: of the memory bandwidth, of the dense rate")
          .field("norm", &Unmeasured::norm, "layer norm, RMS norm, eager", config::required(),
                 figure<double>())
          .field("elementwise", &Unmeasured::elementwise, "activations, eager", config::required(),
                 figure<double>())
          .field("add", &Unmeasured::add, "residual add, eager", config::required(), figure<double>())
          .field("fused", &Unmeasured::fused, "fused and compiled kernels", config::required(),
                 figure<double>())
          .field("vector_products", &Unmeasured::vector_products,
                 "fp32 and fp64 products without tensor cores, of the dense rate", config::required(),
                 figure<double>());
  return object;
}

static const config::Object<AttentionReference>& table(config::Type<AttentionReference>) {
  using Reference = AttentionReference;
  static const auto object =
      config::Object<Reference>("attention",
                                "What attention kernels were timed on, whose constants all chips of its "
                                "compute capability take over, with their own rates against its")
          .field("compute_capability", &Reference::compute_capability, "90 for 9.0", config::required(),
                 figure<int>())
          .field("fp32", &Reference::fp32, "dense rate", config::required(), figure<FlopsPerSecond>())
          .field("bf16", &Reference::bf16, "dense rate", config::required(), figure<FlopsPerSecond>())
          .field("compute_units", &Reference::compute_units, "SMs", config::required(), figure<int>());
  return object;
}

namespace {
using config::Node;
using config::Type;

using Rates = std::map<std::string, FlopsPerSecond>;
config::CodecPtr<Rates> rates() {
  return config::map_of(figure<FlopsPerSecond>());
}

using MeasuredRates = std::map<std::string, Spread<FlopsPerSecond>>;
config::CodecPtr<MeasuredRates> measured_rates() {
  return config::map_of(spread<FlopsPerSecond>());
}

struct RawMemory {
  std::string kind;
  Bytes size{};
  BytesPerSecond bandwidth{};
};
const config::Object<RawMemory>& table(Type<RawMemory>) {
  static const auto object =
      config::Object<RawMemory>("memory", "Device memory")
          .field("kind", &RawMemory::kind, "HBM3, GDDR6, ...")
          .field("size", &RawMemory::size, "capacity", config::required(), figure<Bytes>())
          .field("bandwidth", &RawMemory::bandwidth, "data sheet rate", config::required(),
                 figure<BytesPerSecond>());
  return object;
}

struct RawScaleUp {
  std::string link;
  int count = 0;
};
const config::Object<RawScaleUp>& table(Type<RawScaleUp>) {
  static const auto object =
      config::Object<RawScaleUp>("scale-up", "Links between accelerators")
          .field("link", &RawScaleUp::link, "catalogue link", config::required())
          .field("count", &RawScaleUp::count, "links of one accelerator", config::required(), figure<int>());
  return object;
}

struct RawKernels {
  std::optional<double> norm, elementwise, add, fused, product;
};
const config::Object<RawKernels>& table(Type<RawKernels>) {
  static const auto object =
      config::Object<RawKernels>("kernels", "Share of the memory bandwidth that kernels reach")
          .field("norm", &RawKernels::norm, "layer norm, RMS norm, eager", figure<double>())
          .field("elementwise", &RawKernels::elementwise, "activations, eager", figure<double>())
          .field("add", &RawKernels::add, "residual add, eager", figure<double>())
          .field("fused", &RawKernels::fused, "fused and compiled kernels: as a copy", figure<double>())
          .field("product", &RawKernels::product,
                 "matrix products of few rows, which read their weights; not where \"gemm\" was fitted",
                 figure<double>());
  return object;
}

struct RawAccelerator : Accelerator {
  Rates dense;
  MeasuredRates achievable, sustained;
  RawMemory memory_facts;
  std::optional<RawScaleUp> scale_up;
  std::map<std::string, GemmConstants> fitted;
  RawKernels kernels;
};
const config::Object<RawAccelerator>& table(Type<RawAccelerator>) {
  static const auto object =
      config::Object<RawAccelerator>("accelerator", "An accelerator; rates are dense")
          .field("name", &Accelerator::name, "for people", config::required())
          .field("vendor", &Accelerator::vendor, "maker", config::required())
          .field("architecture", &Accelerator::architecture, "family", config::required())
          .field("year", &Accelerator::year, "of launch")
          .field("form", &Accelerator::form, "SXM5, PCIe, OAM, ...")
          .field("compute_capability", &Accelerator::compute_capability, "NVIDIA: 70, 80, 90, ...",
                 figure<int>())
          .field("dense", &RawAccelerator::dense, "rate by precision", config::required(), rates())
          .field("achievable", &RawAccelerator::achievable,
                 "best measured matrix product, also in bf16 where other units than its own compute it",
                 measured_rates())
          .field("sustained", &RawAccelerator::sustained,
                 "matrix product of 8192 cubed kept up for minutes, at the power limit", measured_rates())
          .field("memory", &RawAccelerator::memory_facts, "device memory", config::required())
          .field("compute_units", &Accelerator::compute_units, "SMs or CUs", figure<int>())
          .field("scale_up", &RawAccelerator::scale_up, "links to other accelerators")
          .field("pcie", &Accelerator::pcie_link, "catalogue link of its slot", figure<std::string>())
          .field("peer_to_peer", &Accelerator::peer_to_peer, "PCIe peer-to-peer allowed", figure<bool>())
          .field("tdp", &Accelerator::tdp, "thermal design power", figure<Watts>())
          .field("gemm", &RawAccelerator::fitted, "fitted constants by precision")
          .field("kernels", &RawAccelerator::kernels, "memory-bound kernels")
          .field("host_factor", &Accelerator::host_factor,
                 "how many times slower than a DGX H100's its usual host issues work", figure<double>())
          .field("notes", &Accelerator::notes, "remarks");
  return object;
}

struct Vendor {
  std::string called = "accelerator", library;
};
const config::Object<Vendor>& table(Type<Vendor>) {
  static const auto object =
      config::Object<Vendor>("vendor",
                             "What a vendor's accelerators are called, and the library of their collectives")
          .field("called", &Vendor::called, "one of them: GPU, chip, ...")
          .field("library", &Vendor::library, "NCCL, RCCL, ...", figure<std::string>());
  return object;
}

struct AcceleratorsFile : HardwareFile {
  std::map<std::string, Vendor> vendors;
  std::map<std::string, std::string> relatives;
  Unmeasured unmeasured;
  std::map<std::string, AttentionReference> attention;
  std::map<std::string, RawAccelerator> accelerators;
};
const config::Object<AcceleratorsFile>& table(Type<AcceleratorsFile>) {
  static const auto object =
      hardware_file<AcceleratorsFile>("accelerators file", "Accelerators, and what they have in common")
          .field("vendors", &AcceleratorsFile::vendors, "by \"vendor\" of an accelerator; neutral words else")
          .field("relatives", &AcceleratorsFile::relatives,
                 "whose fitted GEMM constants accelerators without their own take over, by the least compute "
                 "capability from which that holds (\"90\" for 9.0; \"0\" is the first)",
                 config::map_of(figure<std::string>()))
          .field("unmeasured", &AcceleratorsFile::unmeasured, "what those take over that have none of it")
          .field("attention", &AcceleratorsFile::attention, "by architecture")
          .field("accelerators", &AcceleratorsFile::accelerators, "by the name that nodes give");
  return object;
}

void convert(RawAccelerator& raw, const ById<LinkEntry>& links, const AcceleratorsFile& file) {
  for (const auto& [precision, rate] : raw.dense) raw.dense_flops[precision] = rate.value();
  const auto measured = [&](const MeasuredRates& rates, auto& used) {
    for (const auto& [precision, rate] : rates) {
      used[precision] = rate.use.value();
      raw.measured_flops.insert_or_assign(precision, std::pair(rate.low.value(), rate.high.value()));
    }
  };
  measured(raw.achievable, raw.achievable_flops);
  measured(raw.sustained, raw.sustained_flops);  // if both are known, kernels follow the sustained one
  raw.memory = raw.memory_facts.size;
  raw.memory_bandwidth = raw.memory_facts.bandwidth;
  if (raw.scale_up) {
    raw.nvlinks = raw.scale_up->count;
    raw.scale_up_link = raw.scale_up->link;
    if (const auto link = links.find(raw.scale_up_link); link != links.end()) {
      raw.nvlink_line_rate = link->second.line_rate;
    }
  }
  // 0: not measured (gemm.cpp fills it in).
  raw.norm_fraction_eager = raw.kernels.norm.value_or(0);
  raw.elementwise_fraction_eager = raw.kernels.elementwise.value_or(0);
  raw.add_fraction_eager = raw.kernels.add.value_or(0);
  raw.fused_fraction = raw.kernels.fused.value_or(file.unmeasured.fused);
  raw.product_fraction = raw.kernels.product.value_or(raw.product_fraction);
}
}  // namespace

std::string accelerators_schema(std::string_view name) {
  return config::schema<AcceleratorsFile>(name);
}

Derivation read_accelerators(const config::Document& file, const ById<LinkEntry>& links,
                             ById<Accelerator>& accelerators, config::Reader& reader) {
  AcceleratorsFile whole;
  table(Type<AcceleratorsFile>{}).read(file.root(), whole, reader);
  const Node section = file.root().find("accelerators");
  for_each_entry(section, whole.accelerators, [&](const Node& entry, RawAccelerator& raw) {
    if (raw.scale_up) {
      check_known(entry.find("scale_up").find("link"), "link", raw.scale_up->link, links, reader);
    }
    check_known(entry.find("pcie"), "link", raw.pcie_link, links, reader);
    raw.id = entry.key();
    raw.source = first_source(entry);
    for (auto& [precision, constants] : raw.fitted) {
      constants.source = first_source(entry.find("gemm").find(precision));
      raw.gemm.emplace(precision, constants);
    }
    if (const auto vendor = whole.vendors.find(raw.vendor); vendor != whole.vendors.end())
      raw.called = vendor->second.called, raw.library = vendor->second.library;
    for (const auto& [architecture, reference] : whole.attention)
      if (reference.compute_capability == raw.compute_capability) raw.attention_reference = reference;
    convert(raw, links, whole);
    accelerators.emplace(raw.id, std::move(raw));
  });
  // With several files only one of them has it, so the table does not require it.
  if (!file.root().find("unmeasured"))
    reader.problem(file.root(), "missing key \"unmeasured\"", {},
                   "the shares that nobody's measurement gives");
  return {read_relatives(file, whole.relatives, accelerators, reader), whole.unmeasured};
}
}  // namespace topsim::topology
