#include "topology/catalogue/gemm.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

namespace topsim::topology {
namespace {
constexpr double kTilePerimeter = 1.0 / 256 + 1.0 / 128;

// m of one accelerator: the best measured rate divided by the data-sheet rate.
std::optional<double> measured_share(const Accelerator& accelerator, std::string_view precision) {
  const double* best = accelerator.best_product(precision);
  const auto rate = accelerator.dense_flops.find(precision);
  if (best == nullptr || rate == accelerator.dense_flops.end()) return {};
  return *best / rate->second;
}

bool on_vector_units(const Accelerator& accelerator, std::string_view precision) {
  if (precision != "fp32" && precision != "fp64") return false;
  const auto tensor = accelerator.dense_flops.find(std::string_view("tf32"));
  return tensor == accelerator.dense_flops.end() ||
         tensor->second > accelerator.dense_flops.find(precision)->second;
}

double rate_per_unit(const Accelerator& accelerator, std::string_view precision) {
  return accelerator.dense_flops.find(precision)->second / std::max(1, accelerator.compute_units);
}

// The ratio of the best tile's efficiency to the relative's, and its source; `q` is the precision of the
// shape, `sibling` is m in bf16 of a chip of the same architecture.
std::pair<double, std::string> height(const Accelerator& accelerator, std::string_view precision,
                                      const Accelerator& relative, std::string_view q,
                                      const std::optional<double>& sibling) {
  const double best_tile = best_tile_efficiency(relative.gemm.find(q)->second);
  const double theirs = measured_share(relative, q).value_or(best_tile);
  if (const auto mine = measured_share(accelerator, precision))
    return {*mine / theirs, "its best " + std::string(precision) + " product"};
  // A chip loses as much from q to this precision as its relative.
  const double narrowing =
      measured_share(relative, precision == "nvfp4" ? "fp4" : precision).value_or(theirs);
  const double lost = precision == q ? 1 : narrowing / theirs;
  const double fitted = measured_share(relative, kFittedIn).value_or(best_tile);
  if (const auto mine = measured_share(accelerator, kFittedIn))
    return {*mine / fitted * lost, "its best bf16 product"};
  if (sibling) return {*sibling / fitted * lost, "the best bf16 product of its architecture"};
  return {lost, relative.id};
}

GemmConstants derive(const Accelerator& accelerator, std::string_view precision, const Accelerator& relative,
                     const std::optional<double>& sibling, double vector_products) {
  const auto own_shape = relative.gemm.find(precision);
  const std::string_view q = own_shape != relative.gemm.end() ? precision : kFittedIn;
  const GemmConstants& shape = relative.gemm.find(q)->second;
  GemmConstants gemm = shape;
  if (accelerator.compute_units > 0) {
    const double faster = rate_per_unit(accelerator, precision) / rate_per_unit(relative, q);
    gemm.k_offset = shape.k_offset * faster;
    if (accelerator.compute_capability > 0 && accelerator.compute_capability == relative.compute_capability)
      gemm.tile_penalty = shape.tile_penalty * faster;
  }
  if (accelerator.product_fraction > 0) gemm.memory_fraction = accelerator.product_fraction;
  const std::string from = "derived: shape of " + relative.id + " in " + std::string(q);
  double share = measured_share(accelerator, precision).value_or(vector_products);
  gemm.source = from + ", fp32 on vector units";
  if (!on_vector_units(accelerator, precision)) {
    const auto [factor, why] = height(accelerator, precision, relative, q, sibling);
    share = best_tile_efficiency(shape) * factor;
    gemm.source = from + ", height from " + why;
  }
  gemm.peak_fraction = share * (1 + gemm.tile_penalty * kTilePerimeter);
  return gemm;
}
// Eager kernels follow the relative's, because instructions and latency limit them beside the memory.
void derive_kernel_shares(Accelerator& accelerator, const Accelerator& relative,
                          const Unmeasured& unmeasured) {
  for (const auto& [share, others] : {std::pair(&Accelerator::norm_fraction_eager, unmeasured.norm),
                                      {&Accelerator::elementwise_fraction_eager, unmeasured.elementwise},
                                      {&Accelerator::add_fraction_eager, unmeasured.add}}) {
    if (accelerator.*share > 0) continue;
    const bool kin = accelerator.compute_capability > 0 && relative.*share > 0;
    accelerator.*share = kin ? relative.*share : others;
  }
}
}  // namespace

const double* Accelerator::best_product(std::string_view precision) const {
  if (const auto own = achievable_flops.find(precision); own != achievable_flops.end()) return &own->second;
  const auto rate = dense_flops.find(precision);
  if (rate == dense_flops.end()) return nullptr;
  const std::string_view other = precision == "bf16" ? "fp16" : precision == "fp16" ? "bf16" : "";
  const auto best = achievable_flops.find(other);
  const auto other_rate = dense_flops.find(other);
  const bool same = other_rate != dense_flops.end() && other_rate->second == rate->second;
  return best != achievable_flops.end() && same ? &best->second : nullptr;
}

double best_tile_efficiency(const GemmConstants& gemm) {
  return gemm.peak_fraction / (1 + gemm.tile_penalty * kTilePerimeter);
}

void derive_gemm_constants(ById<Accelerator>& accelerators, const Derivation& derivation) {
  const auto& [relatives, unmeasured] = derivation;
  // Copies made beforehand: constants derived in this loop must not be taken for fitted ones.
  ById<Accelerator> fitted;
  for (const auto& [from, id] : relatives) fitted.insert(*accelerators.find(id));
  // NVIDIA's architecture names cover chips of several kinds, which have relatives of their own.
  std::map<std::string, double, std::less<>> siblings;
  for (const auto& [id, accelerator] : accelerators)
    if (const auto share = measured_share(accelerator, kFittedIn);
        share && accelerator.compute_capability == 0)
      siblings.emplace(accelerator.architecture, *share);
  for (auto& [id, accelerator] : accelerators) {
    const auto sibling = siblings.find(accelerator.architecture);
    const auto share = sibling != siblings.end() ? std::optional(sibling->second) : std::nullopt;
    const std::string& nearest =
        std::prev(relatives.upper_bound(std::max(0, accelerator.compute_capability)))->second;
    const Accelerator& relative = fitted.find(nearest)->second;
    derive_kernel_shares(accelerator, relative, unmeasured);
    for (const auto& [precision, flops] : accelerator.dense_flops) {
      if (accelerator.gemm.contains(precision)) continue;
      accelerator.gemm.emplace(precision,
                               derive(accelerator, precision, relative, share, unmeasured.vector_products));
    }
  }
}
}  // namespace topsim::topology
