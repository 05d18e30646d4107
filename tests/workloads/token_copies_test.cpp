#include "workloads/layer/token_copies.hpp"

#include <gtest/gtest.h>

namespace topsim::workloads::token_copies_test {

// DeepSeek-V3: 256 experts, of which a token takes 8, on 64 ranks in 8 NVLink domains.
struct Spread {
  ModelSpec model;
  Plan plan;
  explicit Spread(int node_limit) {
    model.experts.top_k = 8;
    model.experts.node_limit = node_limit;
    plan.ep = 64, plan.etp = 1;
    plan.experts.slots = 256;
    plan.domain_ranks = 8;
  }
};

// Of at most g = 4 domains of 32 experts each one is missed with prod over i < 8 of (96 - i) / (128 - i) =
// 0.0927, so 4 x 0.9073 are sent to. Of the 32 ranks there, of 4 experts each, one is missed with prod (124 -
// i) / (128 - i) = 0.7700, so 32 x 0.2300 get a copy.
TEST(TokenCopies, GoToFourDomainsAtMostAndFromThereToTheirRanks) {
  const Spread spread(4);
  EXPECT_EQ(exchange_domains(spread.plan), 8);
  EXPECT_NEAR(copies_sent(spread.model, spread.plan), 3.6290, 1e-4);
  EXPECT_NEAR(ranks_visited(spread.model, spread.plan), 7.3594, 1e-4);
}

// Without a limit: 8 (1 - prod (224 - i) / (256 - i)) and 64 (1 - prod (252 - i) / (256 - i)).
TEST(TokenCopies, WithoutALimitGoToMoreOfBoth) {
  const Spread spread(0);
  EXPECT_NEAR(copies_sent(spread.model, spread.plan), 5.2947, 1e-4);
  EXPECT_NEAR(ranks_visited(spread.model, spread.plan), 7.6758, 1e-4);
}

// In one domain every rank gets its own from the start, whatever the limit says of nodes.
TEST(TokenCopies, InOneDomainGoToRanks) {
  Spread spread(4);
  spread.plan.domain_ranks = 64;
  EXPECT_EQ(exchange_domains(spread.plan), 1);
  EXPECT_NEAR(copies_sent(spread.model, spread.plan), 7.6758, 1e-4);
  EXPECT_NEAR(ranks_visited(spread.model, spread.plan), 7.6758, 1e-4);
}

// Three experts of four on two ranks of two: none is missed, since one rank holds two only.
TEST(TokenCopies, MissNobodyWhereAllThatIsLeftIsTaken) {
  Spread spread(0);
  spread.model.experts.top_k = 3;
  spread.plan.ep = 2, spread.plan.experts.slots = 4, spread.plan.domain_ranks = 2;
  EXPECT_EQ(copies_sent(spread.model, spread.plan), 2);
}
}  // namespace topsim::workloads::token_copies_test
