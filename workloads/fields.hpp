// Field tables of the workload section: reading, writing back, JSON Schema and error messages come from them.
#pragma once

#include "sim/config/object.hpp"
#include "workloads/spec.hpp"

namespace topsim::workloads {

const config::Object<AttentionSpec>& table(config::Type<AttentionSpec>);
const config::Object<ExpertSpec>& table(config::Type<ExpertSpec>);
const config::Object<ModelSpec>& table(config::Type<ModelSpec>);
const config::Object<PlanSpec>& table(config::Type<PlanSpec>);
const config::Object<PrecisionSpec>& table(config::Type<PrecisionSpec>);
const config::Object<LoraSpec>& table(config::Type<LoraSpec>);
const config::Object<StageTimes>& table(config::Type<StageTimes>);
const config::Object<ComputeSpec>& table(config::Type<ComputeSpec>);
const config::Object<TraceSpec>& table(config::Type<TraceSpec>);
const config::Object<WorkloadSpec>& table(config::Type<WorkloadSpec>);

// "full", or the number of layers per stage that are recomputed in full.
config::CodecPtr<RecomputeSpec> codec(config::Type<RecomputeSpec>);
// "all", "node", or a number of ranks.
config::CodecPtr<ZeroGroup> codec(config::Type<ZeroGroup>);
// true, or how many documents share a sequence.
config::CodecPtr<PackingSpec> codec(config::Type<PackingSpec>);
config::CodecPtr<Precision> codec(config::Type<Precision>);
}  // namespace topsim::workloads
