#include "topology/catalogue/gemm.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "sim/base/error.hpp"

namespace topsim::topology {
namespace {
constexpr double kTilePerimeter = 1.0 / 256 + 1.0 / 128;
constexpr double kVectorUnits = 0.977;        // A100, FlagPerf computation-FP32: 19.05 of 19.5 TFLOP/s
constexpr double kMi300xStream = 4.33 / 5.3;  // arXiv:2511.17127
constexpr std::string_view kFitted = "bf16";

constexpr std::array<std::string_view, 4> kRelatives = {"a100-sxm4-80gb", "a40", "h100-sxm5", "b200"};

std::string_view relative_of(const Accelerator& accelerator) {
  const int capability = accelerator.compute_capability;
  if (capability >= 120 || capability == 86 || capability == 89) return kRelatives[1];
  if (capability >= 100) return kRelatives[3];
  return capability >= 90 ? kRelatives[2] : kRelatives[0];
}

// m of one accelerator: measured best over data-sheet rate. The two formats of 16 bits stand for each other
// where they run at one rate.
std::optional<double> measured_share(const Accelerator& accelerator, std::string_view precision) {
  const auto peak = accelerator.dense_flops.find(precision);
  if (peak == accelerator.dense_flops.end()) return {};
  const auto share_of = [&](std::string_view measured) -> std::optional<double> {
    const auto best = accelerator.achievable_flops.find(measured);
    const auto rate = accelerator.dense_flops.find(measured);
    if (best == accelerator.achievable_flops.end() || rate == accelerator.dense_flops.end()) return {};
    return rate->second == peak->second ? std::optional(best->second / peak->second) : std::nullopt;
  };
  if (const auto own = share_of(precision)) return own;
  return precision == "bf16" ? share_of("fp16") : precision == "fp16" ? share_of("bf16") : std::nullopt;
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

// What the best tile reaches over what the relative's does, and why; `q` is the precision of the shape.
std::pair<double, std::string> height(const Accelerator& accelerator, std::string_view precision,
                                      const Accelerator& relative, std::string_view q) {
  const auto ratio = [&](std::string_view own, std::string_view other) -> std::optional<double> {
    const auto mine = measured_share(accelerator, own);
    const double best_tile = best_tile_efficiency(relative.gemm.find(q)->second);
    const double theirs = measured_share(relative, other).value_or(best_tile);
    return mine ? std::optional(*mine / theirs) : std::nullopt;
  };
  if (const auto h = ratio(precision, q)) return {*h, "its best " + std::string(precision) + " product"};
  if (const auto h = ratio(kFitted, kFitted)) return {*h, "its best bf16 product"};
  return {1, relative.id};
}

GemmConstants derive(const Accelerator& accelerator, std::string_view precision,
                     const Accelerator& relative) {
  const auto own_shape = relative.gemm.find(precision);
  const std::string_view q = own_shape != relative.gemm.end() ? precision : kFitted;
  const GemmConstants& shape = relative.gemm.find(q)->second;
  GemmConstants gemm = shape;
  if (accelerator.compute_units > 0) {
    gemm.k_offset = shape.k_offset * rate_per_unit(accelerator, precision) / rate_per_unit(relative, q);
  }
  if (accelerator.architecture == "CDNA3") gemm.memory_fraction = kMi300xStream;
  const std::string from = "derived: shape of " + relative.id + " in " + std::string(q);
  double share = measured_share(accelerator, precision).value_or(kVectorUnits);
  gemm.source = from + ", fp32 on vector units";
  if (!on_vector_units(accelerator, precision)) {
    const auto [factor, why] = height(accelerator, precision, relative, q);
    share = best_tile_efficiency(shape) * factor;
    gemm.source = from + ", height from " + why;
  }
  gemm.peak_fraction = share * (1 + shape.tile_penalty * kTilePerimeter);
  return gemm;
}
}  // namespace

double best_tile_efficiency(const GemmConstants& gemm) {
  return gemm.peak_fraction / (1 + gemm.tile_penalty * kTilePerimeter);
}

void derive_gemm_constants(ById<Accelerator>& accelerators) {
  // Copies made before: what is derived on the way must not pass for fitted.
  ById<Accelerator> relatives;
  for (const std::string_view id : kRelatives) {
    const auto found = accelerators.find(id);
    if (found != accelerators.end() && found->second.gemm.contains(kFitted)) relatives.insert(*found);
  }
  for (auto& [id, accelerator] : accelerators) {
    const auto relative = relatives.find(relative_of(accelerator));
    if (relative == relatives.end()) {
      throw InternalError("the catalogue lacks fitted GEMM constants of " +
                          std::string(relative_of(accelerator)));
    }
    for (const auto& [precision, flops] : accelerator.dense_flops) {
      if (accelerator.gemm.contains(precision)) continue;
      accelerator.gemm.emplace(precision, derive(accelerator, precision, relative->second));
    }
  }
}
}  // namespace topsim::topology
