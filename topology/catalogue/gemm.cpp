#include "topology/catalogue/gemm.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "sim/base/error.hpp"

namespace topsim::topology {
namespace {
constexpr double kTilePerimeter = 1.0 / 256 + 1.0 / 128;
constexpr double kVectorUnits = 0.977;        // A100, FlagPerf computation-FP32: 19.05 of 19.5 TFLOP/s
constexpr double kMi300xStream = 4.33 / 5.3;  // arXiv:2511.17127
constexpr std::string_view kFitted = "bf16";

std::string_view relative_of(const Accelerator& accelerator) {
  const int capability = accelerator.compute_capability;
  if (capability >= 90) return "h100-sxm5";
  if (capability == 86 || capability == 89) return "a40";
  return "a100-sxm4-80gb";
}

// r of one accelerator: measured best over data-sheet rate.
std::optional<double> measured_share(const Accelerator& accelerator, std::string_view precision) {
  const auto best = accelerator.achievable_flops.find(precision);
  const auto peak = accelerator.dense_flops.find(precision);
  if (best == accelerator.achievable_flops.end() || peak == accelerator.dense_flops.end()) return {};
  return best->second / peak->second;
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

// What the best tile reaches, over what the relative's fitted best tile reaches, and why.
std::pair<double, std::string> height(const Accelerator& accelerator, std::string_view precision,
                                      const Accelerator& relative) {
  const std::optional<double> base = measured_share(relative, kFitted);
  if (!base) return {1, relative.id};
  if (const auto own = measured_share(accelerator, precision)) {
    return {*own / *base, "its best " + std::string(precision) + " product"};
  }
  const double step = measured_share(relative, precision).value_or(*base) / *base;
  if (const auto own = measured_share(accelerator, kFitted)) {
    return {*own / *base * step, "its best bf16 product"};
  }
  return {step, relative.id};
}

GemmConstants derive(const Accelerator& accelerator, std::string_view precision, const Accelerator& relative,
                     const GemmConstants& shape) {
  GemmConstants gemm = shape;
  if (accelerator.compute_units > 0) {
    gemm.k_offset = shape.k_offset * rate_per_unit(accelerator, precision) / rate_per_unit(relative, kFitted);
  }
  if (accelerator.architecture == "CDNA3") gemm.memory_fraction = kMi300xStream;
  double share = kVectorUnits;
  gemm.source = "derived: shape of " + relative.id + ", fp32 on vector units";
  if (!on_vector_units(accelerator, precision)) {
    const auto [factor, why] = height(accelerator, precision, relative);
    share = best_tile_efficiency(shape) * factor;
    gemm.source = "derived: shape of " + relative.id + ", height from " + why;
  }
  gemm.peak_fraction = share * (1 + shape.tile_penalty * kTilePerimeter);
  return gemm;
}
}  // namespace

double best_tile_efficiency(const GemmConstants& gemm) {
  return gemm.peak_fraction / (1 + gemm.tile_penalty * kTilePerimeter);
}

void derive_gemm_constants(ById<Accelerator>& accelerators) {
  for (auto& [id, accelerator] : accelerators) {
    const auto relative = accelerators.find(relative_of(accelerator));
    if (relative == accelerators.end() || !relative->second.gemm.contains(kFitted)) {
      throw InternalError("the catalogue lacks fitted GEMM constants of " +
                          std::string(relative_of(accelerator)));
    }
    const GemmConstants shape = relative->second.gemm.find(kFitted)->second;
    for (const auto& [precision, flops] : accelerator.dense_flops) {
      const auto own = accelerator.gemm.find(precision);
      if (own == accelerator.gemm.end()) {
        accelerator.gemm.emplace(precision, derive(accelerator, precision, relative->second, shape));
      } else if (const auto cap = measured_share(accelerator, precision);
                 cap && best_tile_efficiency(own->second) > *cap) {
        own->second.peak_fraction *= *cap / best_tile_efficiency(own->second);
      }
    }
  }
}
}  // namespace topsim::topology
