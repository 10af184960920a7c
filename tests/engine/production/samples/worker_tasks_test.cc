// WorkerTasks gives each ready sample to one turn of a worker.
#include "engine/production/samples/worker_tasks.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "tests/testing/threads/one_lease.h"

namespace stoker {
namespace {

class WorkerTasksTest : public ::testing::Test {
 protected:
  // Claims a sample for this row, as if its bytes had arrived.
  uint32_t Ready(uint32_t row) {
    const uint32_t index = samples_.Take().value();
    samples_[index].claim.row = row;
    tasks_.Add(index);
    return index;
  }

  static void Turn(void* context, uint32_t first, int worker) {
    auto& self = *static_cast<WorkerTasksTest*>(context);
    self.turns_.push_back(first);
    if (self.in_turn_) self.in_turn_(worker);
  }

  testing::OneLease lease_;
  testing::ManualExecutor executor_{2};
  SamplesInFlight samples_{16, lease_->samples(), /*pieces=*/0};
  std::vector<uint32_t> turns_;
  std::function<void(int)> in_turn_;
  WorkerTasks tasks_{samples_, *lease_, executor_, &WorkerTasksTest::Turn, this};
};

TEST_F(WorkerTasksTest, TheRowThatIsNeededFirstComesFirst) {
  const uint32_t late = Ready(5), early = Ready(2);
  while (executor_.RunOne()) {
  }
  EXPECT_EQ(turns_, (std::vector<uint32_t>{early, late}));
  EXPECT_TRUE(lease_->TryDrain(std::chrono::milliseconds(1))) << "no task counts any more";
}

TEST_F(WorkerTasksTest, ASampleThatATurnTakesMakesATaskSurplus) {
  Ready(0);
  const uint32_t second = Ready(1);
  Ready(2);
  std::optional<uint32_t> taken;
  in_turn_ = [&](int) { taken = tasks_.TakeFurther(); };
  ASSERT_TRUE(executor_.RunOne());
  EXPECT_EQ(taken, second) << "one is left for the other worker";
  in_turn_ = [&](int) { EXPECT_FALSE(tasks_.TakeFurther()); };
  while (executor_.RunOne()) {
  }
  EXPECT_EQ(turns_.size(), 2u) << "three samples, two turns, and a surplus task";
}

TEST_F(WorkerTasksTest, ARefusedTaskIsSentAgain) {
  tasks_.SetLimit(1);
  Ready(0);
  Ready(1);
  in_turn_ = [&](int) {
    in_turn_ = {};
    ASSERT_TRUE(executor_.RunOne(1));
    EXPECT_EQ(turns_.size(), 1u) << "the other worker found no room";
  };
  ASSERT_TRUE(executor_.RunOne());
  EXPECT_EQ(executor_.pending(), 1u) << "it was sent again when this one left";
  ASSERT_TRUE(executor_.RunOne());
  EXPECT_EQ(turns_.size(), 2u);
}

TEST_F(WorkerTasksTest, AHigherLimitSendsTheRefused) {
  tasks_.SetLimit(1);
  Ready(0);
  Ready(1);
  in_turn_ = [&](int) {
    in_turn_ = {};
    ASSERT_TRUE(executor_.RunOne(1));
    tasks_.SetLimit(2);
    ASSERT_TRUE(executor_.RunOne(1));
    EXPECT_EQ(turns_.size(), 2u) << "both at a time";
  };
  ASSERT_TRUE(executor_.RunOne());
  EXPECT_EQ(executor_.pending(), 0u);
}

}  // namespace
}  // namespace stoker
