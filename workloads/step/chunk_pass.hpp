// The passage of one micro-batch through the part of the model that a rank holds, emitted piece by piece, so
// that two passages can alternate.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "workloads/schedule/schedule.hpp"
#include "workloads/step/data_parallel.hpp"
#include "workloads/step/stage_emitter.hpp"
#include "workloads/step/stage_program.hpp"

namespace topsim::workloads {

// A part of the model on a rank.
struct Chunk {
  int index = 0;
  int first_layer = 0, layers = 0;
  int recomputed = 0;                            // the first so many of them
  bool first = false, last = false;              // of the model
  int first_micro_batch = 0, micro_batches = 0;  // that pass through it in a step
  int backward_done = 0;
  // Copies to the host of what layers keep, by micro-batch and layer.
  std::map<std::pair<int, int>, std::uint32_t> on_host;
};

class ChunkPass {
 public:
  // REQUIRES: everything outlives the pass.
  ChunkPass(const ModelSpec& model, const Plan& plan, const StepPieces& pieces, Chunk& chunk,
            const StageTask& task, StageEmitter& emitter, DataParallel& data);
  [[nodiscard]] bool done() const { return next_ == segments_.size(); }
  // The next piece needs an all-to-all among experts that is in progress.
  [[nodiscard]] bool awaits_exchange() const;
  // REQUIRES: !done(). Emits the next piece, and around it what data parallelism does there.
  void advance();

 private:
  struct Segment {  // a layer, the embedding or the head
    const PieceList* pieces;
    int layer, unit;
    double kept = 0;                               // bytes that wait in host memory for the backward pass
    std::uint32_t returned = StageEmitter::kNoOp;  // the copy that brings them back
  };
  void add(const PiecePair& pair, int layer, double kept = 0);
  void fetch(Segment& segment);
  void begin(Segment& segment);
  void end(const Segment& segment);

  const Plan& plan_;
  Chunk& chunk_;
  StageTask task_;
  StageEmitter& emitter_;
  DataParallel& data_;
  bool forward_, completes_, last_ = false;
  WeightGradients weights_;
  std::vector<Segment> segments_;
  std::size_t next_ = 0;
  StageEmitter::Walk walk_;
};

// Emits both to the end. Each runs until it would wait for an exchange among experts; then the other
// computes.
void take_turns(ChunkPass& first, ChunkPass& second);
}  // namespace topsim::workloads
