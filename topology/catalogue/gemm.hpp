// GEMM constants of accelerators that have no sweep of their own: derived from one that has.
//
// The model (workloads/compute):  t = max(tiles, memory) + t0 with e = pf / (1 + c (1/tm + 1/tn)).
// Fitted on public sweeps, each with its error on held-out shapes: A100, H100, A40, B200 in bf16; H100, H200,
// B200 in fp8, without the cast of the operands (accelerators.json). The rest take the shape of the curve
// from their nearest relative, and its height from measurements:
//
//   relative    by compute capability, as "relatives" of accelerators.json has them with their reasons
//   q           the precision itself where the relative was fitted in it, else bf16
//   c, t0, beta the relative's in q: how operands reach the tensor cores is a trait of the architecture. c is
//               what a tile loads beside what it multiplies: in chips of one compute capability it goes with
//               the rate per unit (H20: products cut to a seventh, loads as an H100's). beta: what was
//               measured where the catalogue says so ("kernels": "product"), for A40's memory checks itself
//   k0          the relative's x (rate per unit) / (the relative's in q): prologue and epilogue are times, so
//               the depth they cost grows with the rate
//   pf          so that the best tile (256 x 128) reaches E x h of P. E: what the relative's best tile
//   reaches
//               in q. h: how much better or worse this accelerator was ever seen to do, with m = best
//               measured matrix product (MAMF) / P:  m(this, precision) / m(relative, q) where measured, else
//               m(this, bf16) / m(relative, bf16) where measured, of this or, no NVIDIA GPU, of a chip of its
//               architecture; times m(relative, precision) / m(relative, q) where measured; else 1. No one
//               published an A40's MAMF: its best tile stands for it (0.825; RTX A6000, the same chip, 0.797)
//   fp32        on vector units: measured, else an A100's share of P ("unmeasured" of accelerators.json)
// A derived model never beats MAMF, because the fitted best tiles do not (A100 0.777 of P where MAMF is
// 0.869; H100 0.790 and 0.803; B200 0.696 and 0.776). GeForce cards clock above their data sheet, so that
// their MAMF, and pf with it, may exceed P (RTX 5090: 236 of 209.5 TFLOP/s).
#pragma once

#include "topology/catalogue/impl.hpp"

namespace topsim::topology {

// Share of the peak at the largest tile, waves and memory aside: pf / (1 + c (1/256 + 1/128)).
[[nodiscard]] double best_tile_efficiency(const GemmConstants& gemm);

inline constexpr std::string_view kFittedIn = "bf16";  // every relative was

// Ids of relatives by the least compute capability from which they hold. 0: what has none, too.
using Relatives = std::map<int, std::string>;
// From what the file says. All of them known and fitted, and one for 0, where `reader` is content.
[[nodiscard]] Relatives read_relatives(const config::Document& file,
                                       const std::map<std::string, std::string>& written,
                                       const ById<Accelerator>& accelerators, config::Reader& reader);

// "unmeasured" of accelerators.json: of one chip, taken over by those that say nothing.
struct Unmeasured {
  double norm = 0, elementwise = 0, add = 0, fused = 0;  // as Accelerator's, of the memory bandwidth
  double vector_products = 0;                            // of the dense rate
};

// What figures are derived from that an entry does not have.
struct Derivation {
  Relatives relatives;
  Unmeasured unmeasured;
};

// Fills the shares of eager kernels that the file does not give with the relative's (an NVIDIA GPU's, where
// it has them; else those of nobody's measurement), and Accelerator::gemm for every precision in dense_flops
// that the file gives no constants for. REQUIRES: as read, without a problem.
void derive_gemm_constants(ById<Accelerator>& accelerators, const Derivation& derivation);
}  // namespace topsim::topology
