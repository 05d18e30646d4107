// The table of network models.
#include "sim/network/factory.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "sim/base/error.hpp"

namespace topsim::network::factory_test {
TEST(Models, AreFoundByNameAndByKind) {
  for (const Model& each : models()) {
    EXPECT_EQ(&find_model(each.name), &each);
    EXPECT_EQ(&traits(each.kind), &each);
    EXPECT_EQ(name_of(each.kind), each.name);
  }
  EXPECT_EQ(find_model("flow").kind, kDefaultModel);
  EXPECT_THROW((void)find_model("flwo"), ConfigError);
}

// make_network() of this folder has capacities only; the executor makes the others.
TEST(Models, NeedNoMoreThanCapacitiesUnlessTheySendPackets) {
  for (const Model& each : models()) EXPECT_EQ(each.make == nullptr, each.packets) << each.name;
}
}  // namespace topsim::network::factory_test
