#include "workloads/layer/pieces.hpp"

#include <utility>

namespace topsim::workloads {

std::string_view name_of(Part part) {
  switch (part) {
    case Part::batch:
      return "batch";
    case Part::attention:
      return "attention";
    case Part::mlp:
      return "mlp";
    case Part::router:
      return "router";
    case Part::dispatch:
      return "dispatch";
    case Part::experts:
      return "experts";
    case Part::combine:
      return "combine";
    case Part::norm:
      return "norm";
    case Part::embedding:
      return "embedding";
    case Part::head:
      return "head";
    case Part::loss:
      return "loss";
    case Part::layers:
      return "layers";
    case Part::optimizer:
      return "optimizer";
  }
  return "unknown";
}

int PieceList::compute(Part part, const KernelCost& cost, int wait, double parameters, Weights weights) {
  Piece piece;
  piece.part = part;
  piece.cost = cost;
  piece.wait = wait;
  piece.parameters = parameters;
  piece.weights = weights;
  pieces_.push_back(piece);
  return static_cast<int>(pieces_.size()) - 1;
}

int PieceList::weight_gradient(Part part, const KernelCost& cost, int wait, double parameters,
                               Weights weights) {
  const int index = compute(part, cost, wait, parameters, weights);
  pieces_.back().weight_gradient = true;
  return index;
}

int PieceList::collective(Part part, program::CollectiveKind kind, double bytes, int ranks, Group group,
                          int wait) {
  if (ranks <= 1 || bytes <= 0) return Piece::kNone;
  Piece piece;
  piece.collective = true;
  piece.part = part;
  piece.kind = kind;
  piece.bytes = bytes;
  piece.group = group;
  piece.wait = wait;
  pieces_.push_back(piece);
  return static_cast<int>(pieces_.size()) - 1;
}

void PieceList::hold_units(int collective, std::int16_t units) {
  if (collective != Piece::kNone) pieces_[static_cast<std::size_t>(collective)].units = units;
}

void PieceList::use_own_kernels(int collective, double seconds) {
  if (collective != Piece::kNone) pieces_[static_cast<std::size_t>(collective)].own_kernels = seconds;
}

int PieceList::add(const Piece& piece) {
  pieces_.push_back(piece);
  return static_cast<int>(pieces_.size()) - 1;
}

void PieceList::append(const PieceList& other) {
  const int offset = static_cast<int>(pieces_.size());
  for (Piece piece : other.pieces_) {
    if (piece.wait != Piece::kNone) piece.wait += offset;
    pieces_.push_back(piece);
  }
}

void PieceList::set_host_time(double seconds_per_kernel) {
  for (Piece& piece : pieces_) piece.cost.host = piece.cost.kernels * seconds_per_kernel;
}

void PieceList::set_host_time(Part part, double seconds_per_kernel) {
  for (Piece& piece : pieces_)
    if (piece.part == part) piece.cost.host = piece.cost.kernels * seconds_per_kernel;
}

PieceList PieceList::without_parameters() const {
  PieceList result = *this;
  for (Piece& piece : result.pieces_) piece.parameters = piece.frozen_parameters = 0;
  return result;
}

PieceList PieceList::recomputed() const {
  PieceList result = *this;
  for (Piece& piece : result.pieces_) {
    piece.cost.flops = 0;
    piece.read_again = std::exchange(piece.parameters, 0);
    piece.frozen_parameters = 0;
  }
  return result;
}
}  // namespace topsim::workloads
