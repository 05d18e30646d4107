#include "sim/study/sweep_database.hpp"

#include <gtest/gtest.h>

namespace topsim::study::sweep_database_test {

TEST(SweepDatabase, AStatementThatFailedRunsAgain) {
  const Database database("");
  database.run("CREATE TABLE points (point TEXT PRIMARY KEY, tokens INTEGER)");
  Statement add(database, "INSERT INTO points VALUES (?, ?)");
  add.bind("a").bind(std::int64_t{1}).run();
  EXPECT_THROW(add.bind("a").bind(std::int64_t{2}).run(), ConfigError);
  add.bind("b").bind(std::int64_t{3}).run();
  EXPECT_THROW(add.bind("c").bind(std::int64_t{4}).bind(std::int64_t{5}), ConfigError);  // two columns
  add.bind("c").bind(std::int64_t{4}).run();

  Statement sum(database, "SELECT count(*), sum(tokens) FROM points");
  ASSERT_TRUE(sum.step());
  EXPECT_EQ(sum.integer(0), 3);
  EXPECT_EQ(sum.integer(1), 1 + 3 + 4);
}
}  // namespace topsim::study::sweep_database_test
