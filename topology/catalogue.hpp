// Hardware is data: configs/hardware/*.json, every figure with its source. Read once, then constant.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/units.hpp"

namespace topsim::topology {

struct LinkEntry;     // topology/catalogue/link_entry.hpp
struct NicEntry;      // topology/catalogue/device_entries.hpp
struct SwitchEntry;   // the same
struct CableEntry;    // the same
struct NodeRecipe;    // topology/catalogue/node_recipe.hpp
struct FabricRecipe;  // topology/catalogue/fabric_recipe.hpp
struct PriceEntry;    // topology/catalogue/price_entry.hpp
struct Ratio;         // the same
struct FailureRate;   // the same

// Constants of the tile- and wave-quantised GEMM roofline (formula and symbols:
// workloads/compute/compute_model.hpp).
struct GemmConstants {
  double peak_fraction = 0.85;    // pf: share of the data sheet's dense rate that a perfect tile reaches
  double k_offset = 0;            // k0: extra depth each tile pays for prologue and epilogue
  double memory_fraction = 0.75;  // beta: share of the memory bandwidth that operands stream at
  Duration fixed{};               // t0: per kernel
  double tile_penalty = 8;        // c: loss of small tiles, e = pf / (1 + c (1/tm + 1/tn))
  std::string source;  // "fitted on ..." or "derived: ..." when the accelerator has no sweep of its own
};

// What attention kernels were timed on whose constants all of one compute capability take over
// (workloads/compute/flash.cpp has the constants).
struct AttentionReference {
  int compute_capability = 0;
  FlopsPerSecond fp32, bf16;
  int compute_units = 0;
};

struct Accelerator {
  std::string id, name, vendor, architecture, form, source;
  std::string called = "accelerator";  // what its vendor calls one: "GPU", "chip"
  std::string library;                 // the library of its collectives: "NCCL"; empty: not known
  int year = 0;
  std::map<std::string, double, std::less<>> dense_flops;       // "bf16" -> FLOP/s, dense, no sparsity
  std::map<std::string, double, std::less<>> achievable_flops;  // measured best matmul (MAMF), where known
  std::map<std::string, double, std::less<>> sustained_flops;   // 8192-cube product at the power limit
  // Least and most that sources measured of the sustained product; of the best product where only that is
  // known. The difference between these two products is a power limit, not an uncertainty.
  std::map<std::string, std::pair<double, double>, std::less<>> measured_flops;
  Bytes memory{};
  BytesPerSecond memory_bandwidth{};
  int compute_units = 0;              // SMs or CUs
  int compute_capability = 0;         // sm: 70, 80, 90, 100; 0 when not NVIDIA
  std::string scale_up_link;          // catalogue link: "nvlink4", "xgmi-mi300x"; empty when PCIe only
  int nvlinks = 0;                    // links per accelerator, of whatever kind
  BytesPerSecond nvlink_line_rate{};  // of one link, per direction
  std::string pcie_link;              // catalogue link: "pcie5-x16"
  bool peer_to_peer = true;  // PCIe peer-to-peer allowed (GeForce Ada: no; copies bounce through host memory)
  Watts tdp{};
  // By precision, for each of dense_flops; constants without a sweep are derived (catalogue/gemm.hpp). Use
  // min(model, achievable).
  std::map<std::string, GemmConstants, std::less<>> gemm;
  // Of the memory bandwidth, by kind of kernel.
  double norm_fraction_eager = 0, elementwise_fraction_eager = 0, add_fraction_eager = 0, fused_fraction = 0;
  double product_fraction = 0;  // of a product of few rows that reads its weights; 0: not measured
  std::optional<AttentionReference> attention_reference;  // of its compute capability
  double host_factor = 1;  // its usual host issues work so many times slower than a DGX H100's
  std::vector<std::string> notes;

  // The fastest matmul ever measured, FLOP/s; null where none was. bf16 and fp16 stand for each other where
  // they run at one rate.
  [[nodiscard]] const double* best_product(std::string_view precision) const;
};

// One entry as text, for `topsim list hardware` and did-you-mean.
struct CatalogueEntry {
  std::string id, name, category, source;
};

class Catalogue {
 public:
  // DIR/hardware. A file is read when something of it is first asked for; that call throws ConfigError with
  // all mistakes of the file. Safe to share between threads.
  [[nodiscard]] static Catalogue load(const std::string& config_directory);
  // In layers: what the first says of an entry wins, the others have the rest. REQUIRES: not empty.
  [[nodiscard]] static Catalogue load(std::vector<std::string> config_directories);
  ~Catalogue();
  Catalogue(Catalogue&&) noexcept;
  // Unknown ids throw ConfigError with the closest known one and the list.
  [[nodiscard]] const Accelerator& accelerator(std::string_view id) const;
  [[nodiscard]] const LinkEntry& link(std::string_view id) const;
  [[nodiscard]] const NicEntry& nic(std::string_view id) const;
  [[nodiscard]] const SwitchEntry& network_switch(std::string_view id) const;
  [[nodiscard]] const CableEntry& cable(std::string_view id) const;
  [[nodiscard]] const NodeRecipe& node(std::string_view id) const;
  [[nodiscard]] const FabricRecipe& fabric(std::string_view id) const;
  // How many times longer traffic between accelerators takes on PCIe behind root complexes of a family of
  // CPUs (ModelFacts::cpu_family), which cut its packets (CpuEntry); 1: not known to.
  [[nodiscard]] double peer_overhead(std::string_view cpu_family) const;
  // Null when nobody published a price or a rate.
  [[nodiscard]] const PriceEntry* price(std::string_view id) const;
  [[nodiscard]] const Ratio* ratio(std::string_view id) const;  // "pue", "years", ...
  [[nodiscard]] const FailureRate* failure_rate(std::string_view id) const;
  // Sorted by category in the order accelerators, nodes, fabrics, links, nics, switches, cables; then by id.
  [[nodiscard]] std::vector<CatalogueEntry> entries() const;

  class Impl;  // topology/catalogue/impl.hpp

 private:
  explicit Catalogue(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};
}  // namespace topsim::topology
