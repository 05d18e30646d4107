// Which reason every kind of waiting has.
#include "sim/executor/reasons.hpp"

#include <gtest/gtest.h>

namespace topsim::executor::reasons_test {

using program::Dimension;
using program::Phase;

constexpr Dimension kAll[] = {Dimension::tensor,    Dimension::context,        Dimension::expert,
                              Dimension::data,      Dimension::expert_data,    Dimension::pipeline,
                              Dimension::embedding, Dimension::model_parallel, Dimension::world,
                              Dimension::offload};
static_assert(std::size(kAll) == program::kDimensions);

TEST(Reasons, WhileItRunsACallCountsAsWhatItIsFor) {
  const Reason collectives[] = {Reason::tensor_parallel, Reason::context_parallel,
                                Reason::expert_parallel, Reason::data_parallel,
                                Reason::data_parallel,   Reason::pipeline_transfer,
                                Reason::data_parallel,   Reason::other,
                                Reason::other,           Reason::offload};
  for (std::size_t i = 0; i < std::size(kAll); ++i) {
    EXPECT_EQ(while_running(kAll[i], false), collectives[i]) << program::name_of(kAll[i]);
    // Messages within a stage or a job hand something on, as a pipeline does.
    const bool hands_on = kAll[i] == Dimension::model_parallel || kAll[i] == Dimension::world;
    EXPECT_EQ(while_running(kAll[i], true), hands_on ? Reason::pipeline_transfer : collectives[i])
        << program::name_of(kAll[i]);
  }
}

TEST(Reasons, BeforeItRunsACallWaitsForAStageTheWorkingReplicaOrAStraggler) {
  for (const Dimension dimension : kAll) {
    const auto reason = [&](bool spans, Relation relation) {
      return before_running(dimension, spans, relation);
    };
    const bool offload = dimension == Dimension::offload;
    for (const Relation relation : {Relation::strangers, Relation::stages, Relation::replicas})
      EXPECT_EQ(reason(false, relation), offload ? Reason::offload : Reason::straggler);
    EXPECT_EQ(reason(true, Relation::strangers), offload ? Reason::offload : Reason::straggler);
    EXPECT_EQ(reason(true, Relation::stages), offload ? Reason::offload : Reason::pipeline_bubble);
    EXPECT_EQ(reason(true, Relation::replicas), offload ? Reason::offload : Reason::data_parallel);
  }
}

TEST(Reasons, BesideComputingTheHostOffloadsOrStandsForAStage) {
  EXPECT_EQ(beside_computing(Phase::transfer), Reason::pipeline_transfer);
  for (const Phase phase : {Phase::forward, Phase::backward, Phase::weight_gradient, Phase::recompute,
                            Phase::optimizer, Phase::gradient_sync, Phase::parameter_sync, Phase::other})
    EXPECT_EQ(beside_computing(phase), Reason::offload);
}

// One class of ranks: all are alike. More: what lies between them says what they are to each other.
TEST(Reasons, AtTheEndARankWaitsForTheOthersOfItsRelation) {
  const struct {
    std::size_t classes;
    std::vector<Dimension> peers;
    Relation relation;
    Reason at_end;
  } rows[] = {
      {1, {Dimension::pipeline}, Relation::strangers, Reason::straggler},
      {2, {Dimension::pipeline}, Relation::stages, Reason::pipeline_bubble},
      {2, {Dimension::data, Dimension::pipeline}, Relation::stages, Reason::pipeline_bubble},
      {2, {Dimension::data}, Relation::replicas, Reason::data_parallel},
      {2, {Dimension::world}, Relation::strangers, Reason::straggler},
      {2, {}, Relation::strangers, Reason::straggler},
  };
  for (const auto& row : rows) {
    program::Program program;
    program.classes.resize(row.classes);
    program.peer_dimension = row.peers;
    EXPECT_EQ(relation_of(program), row.relation);
    EXPECT_EQ(reason_at_end(program), row.at_end);
  }
}
}  // namespace topsim::executor::reasons_test
