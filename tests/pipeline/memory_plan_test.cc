#include "engine/pipeline/memory_plan.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

constexpr uint64_t kSlot = 10 << 20;
constexpr MemoryNeeds kNeeds{.slot_bytes = kSlot, .threads = 2, .reads_in_flight = 32};
constexpr uint64_t kMinimum = kSlot + 2 * kWorkspaceBytes + 2 * kReadBufferBytes;

uint64_t Cost(const MemoryPlan& plan) {
  return static_cast<uint64_t>(plan.depth) * kSlot + plan.requests * kReadBufferBytes +
         2 * kWorkspaceBytes;
}

TEST(MemoryPlan, NamesTheMinimum) {
  const auto plan = PlanMemory(kNeeds, kMinimum - 1);
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().code, Code::kResourceExhausted);
  EXPECT_NE(plan.error().cause.find(std::to_string(kMinimum)), std::string::npos);
  ASSERT_TRUE(PlanMemory(kNeeds, kMinimum).ok());
  EXPECT_EQ(PlanMemory(kNeeds, kMinimum)->depth, 1);
}

TEST(MemoryPlan, StaysWithinWhatIsFree) {
  for (uint64_t free = kMinimum; free < 10 * kSlot; free += 100'003) {
    const auto plan = PlanMemory(kNeeds, free);
    ASSERT_TRUE(plan.ok());
    EXPECT_LE(Cost(*plan), free);
    EXPECT_GE(plan->requests, 2u);
  }
}

TEST(MemoryPlan, WithPlentyTheDefaultsApply) {
  const auto plan = PlanMemory(kNeeds, uint64_t{4} << 30);
  EXPECT_EQ(plan->depth, 4);
  EXPECT_EQ(plan->requests, 38u);
}

TEST(MemoryPlan, AnExplicitDepthIsKeptOrRefused) {
  MemoryNeeds needs = kNeeds;
  needs.depth = 16;
  EXPECT_EQ(PlanMemory(needs, uint64_t{4} << 30)->depth, 16);
  EXPECT_FALSE(PlanMemory(needs, 16 * kSlot).ok());
}

TEST(MemoryPlan, AbsurdSizesAreRefusedNotWrapped) {
  MemoryNeeds needs = kNeeds;
  needs.depth = 4096;
  needs.slot_bytes = ~uint64_t{0} / 4000;
  EXPECT_FALSE(PlanMemory(needs, uint64_t{1} << 40).ok());
}

}  // namespace
}  // namespace stoker
