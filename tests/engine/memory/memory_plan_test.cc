#include "engine/memory/memory_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "core/numbers/random.h"

namespace stoker {
namespace {

constexpr uint64_t kSlot = 10 << 20;
constexpr MemoryNeeds kNeeds{
    .slot_bytes = kSlot, .threads = 2, .requests = 38, .first_depth = 2, .max_depth = 64};
constexpr uint64_t kSamples = 2 * kWorkspaceBytes + 2 * kReadBufferBytes;
constexpr uint64_t kMinimum = kSlot + kSamples;
constexpr uint64_t kPlenty = uint64_t{4} << 30;

TEST(MemoryPlan, ErrorNamesTheMinimum) {
  const auto plan = PlanMemory(kNeeds, kMinimum - 1);
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().code, Code::kResourceExhausted);
  EXPECT_NE(plan.error().cause.find(std::to_string(kMinimum)), std::string::npos);
  ASSERT_TRUE(PlanMemory(kNeeds, kMinimum).ok());
  EXPECT_EQ(PlanMemory(kNeeds, kMinimum)->depth, 1);
  EXPECT_EQ(PlanMemory(kNeeds, kMinimum)->requests, kSureReads);
}

TEST(MemoryPlan, ErrorNamesTheImagesOfARow) {
  MemoryNeeds needs = kNeeds;
  needs.pieces = 3;
  const auto has = [](const Result<MemoryPlan>& plan, const std::string& text) {
    return plan.error().cause.find("2 workers for rows of up to 3 images" + text) !=
           std::string::npos;
  };
  EXPECT_TRUE(has(PlanMemory(needs, kSlot), " need at least"));
  EXPECT_TRUE(has(PlanMemory(needs, kSlot, std::array{MemoryClaim{}}),
                  ", next to the other iterations and loaders, need at least"));
}

TEST(MemoryPlan, AdviceNamesTheRoomForCropsOnlyIfThereIsOne) {
  MemoryNeeds needs = kNeeds;
  const auto advice = [&] { return PlanMemory(needs, kMinimum - 1).error().Advice(); };
  const std::string before = "Set memory_budget to " + std::to_string(kMinimum) + " or more, or ";
  EXPECT_EQ(advice(), before + "lower batch_size, depth or threads");
  needs.has_crops = true;
  EXPECT_EQ(advice(), before + "lower batch_size, crop_bytes, depth or threads");
}

TEST(MemoryPlan, BatchesStayWithinTheirShareAndReadsWithinTheSamples) {
  for (uint64_t budget = kMinimum; budget < 20 * kSlot; budget += 100'003) {
    const auto plan = PlanMemory(kNeeds, budget);
    ASSERT_TRUE(plan.ok());
    const MemoryShares shares = ShareMemory(budget, std::array{plan->claim});
    EXPECT_EQ(shares.batches + shares.samples, budget);
    EXPECT_LE(shares.batches, std::max(budget / 2, kSlot));
    EXPECT_LE(static_cast<uint64_t>(plan->max_depth) * kSlot, shares.batches);
    EXPECT_LE(plan->depth, plan->max_depth);
    EXPECT_GE(plan->depth, 1);
    EXPECT_LE((plan->requests - kSureReads) * kReadBufferBytes + kSamples, shares.samples);
    EXPECT_GE(plan->requests, kSureReads);
  }
}

TEST(MemoryPlan, EachPieceOfASampleHasABuffer) {
  MemoryNeeds needs = kNeeds;
  needs.pieces = 3;
  const uint64_t samples = kSamples + 2 * kSureReads * kReadBufferBytes;
  EXPECT_FALSE(PlanMemory(needs, kSlot + samples - 1).ok());
  EXPECT_EQ(PlanMemory(needs, kSlot + samples)->requests, kSureReads);
  for (uint64_t budget = kSlot + samples; budget < 20 * kSlot; budget += 100'003) {
    const auto plan = PlanMemory(needs, budget);
    ASSERT_TRUE(plan.ok());
    EXPECT_LE((plan->requests - kSureReads) * 3 * kReadBufferBytes + samples,
              ShareMemory(budget, std::array{plan->claim}).samples);
  }
  EXPECT_EQ(PlanMemory(needs, kPlenty)->requests, 38u);
}

TEST(MemoryPlan, DefaultsApplyWithPlentyOfMemory) {
  const auto plan = PlanMemory(kNeeds, kPlenty);
  EXPECT_EQ(plan->depth, kNeeds.first_depth);
  EXPECT_EQ(plan->max_depth, kNeeds.max_depth);
  EXPECT_EQ(plan->requests, 38u);
}

TEST(MemoryPlan, AnExplicitDepthIsKeptOrRefused) {
  MemoryNeeds needs = kNeeds;
  needs.depth = 16;
  EXPECT_EQ(PlanMemory(needs, kPlenty)->depth, 16);
  EXPECT_EQ(PlanMemory(needs, kPlenty)->max_depth, 16);
  EXPECT_EQ(PlanMemory(needs, 16 * kSlot + kSamples)->depth, 16) << "more than half";
  EXPECT_FALSE(PlanMemory(needs, 16 * kSlot).ok());
}

TEST(MemoryPlan, RefusesSizesThatOverflow) {
  MemoryNeeds needs = kNeeds;
  needs.depth = 4096;
  needs.slot_bytes = ~uint64_t{0} / 4000;
  EXPECT_FALSE(PlanMemory(needs, uint64_t{1} << 40).ok());
  needs.slot_bytes = ~uint64_t{0};
  EXPECT_FALSE(PlanMemory(needs, ~uint64_t{0} / 16).ok());
}

// Whatever the first loader has done with its share, the second one opens with the budget it named.
TEST(MemoryPlan, ASecondLoaderOpensWithTheBudgetItNamed) {
  RandomStream random({1, 2, 3}, 0);
  for (int i = 0; i < 2000; ++i) {
    MemoryNeeds first = kNeeds, second = kNeeds;
    first.slot_bytes = 1 + random.Below(20 << 20);
    first.depth = static_cast<int>(random.Below(4));
    second.slot_bytes = 1 + random.Below(20 << 20);
    second.depth = static_cast<int>(random.Below(4));
    const uint64_t least = PlanMemory(first, kPlenty)->claim.min_batches;
    const uint64_t budget = least + kSamples + random.Below(60 << 20);
    const auto one = PlanMemory(first, budget);
    ASSERT_TRUE(one.ok());
    const auto reserved = [&](uint64_t limit) {
      return ShareMemory(limit, std::array{one->claim}).batches;  // it has grown as far as it may
    };
    const auto two = PlanMemory(second, budget, std::array{one->claim}, reserved(budget));
    if (two.ok()) {
      const uint64_t first_batches = static_cast<uint64_t>(two->depth) * second.slot_bytes;
      EXPECT_LE(reserved(budget) + first_batches + 2 * kSamples, budget);
      continue;
    }
    const uint64_t named = two.error().changes.at(0).least;
    EXPECT_GT(named, budget);
    EXPECT_TRUE(PlanMemory(second, named, std::array{one->claim}, reserved(named)).ok());
  }
}

TEST(MemoryShares, SampleShareDoesNotDependOnTheNumberOfBatches) {
  const auto plan = PlanMemory(kNeeds, kPlenty);
  EXPECT_EQ(ShareMemory(kPlenty, std::array{plan->claim}).samples, kPlenty / 2);
  MemoryNeeds other = kNeeds;
  other.requests = 1006;
  other.max_depth = 4096;
  EXPECT_EQ(ShareMemory(kPlenty, std::array{PlanMemory(other, kPlenty)->claim}).samples,
            kPlenty / 2);
  MemoryNeeds fixed = kNeeds;
  fixed.depth = 3;
  EXPECT_EQ(ShareMemory(kPlenty, std::array{PlanMemory(fixed, kPlenty)->claim}).samples,
            kPlenty - 3 * kSlot);
  MemoryNeeds large = kNeeds;
  large.slot_bytes = kPlenty / 10;
  EXPECT_EQ(ShareMemory(kPlenty, std::array{PlanMemory(large, kPlenty)->claim}).samples,
            kPlenty / 2);
  EXPECT_EQ(ShareMemory(kMinimum, std::array{plan->claim}).samples, kSamples);
}

TEST(MemoryShares, NameTheSmallestBudgetForASample) {
  RandomStream random({4, 5, 6}, 0);
  for (int i = 0; i < 5000; ++i) {
    std::vector<MemoryClaim> claims(1 + random.Below(3));
    uint64_t least = 0, samples = 0;
    for (MemoryClaim& claim : claims) {
      claim.min_batches = random.Below(100);
      claim.max_batches = claim.min_batches + (random.Below(2) != 0 ? random.Below(300) : 0);
      claim.samples = random.Below(50);
      least += claim.min_batches;
      samples += claim.samples;
    }
    const uint64_t bytes = random.Below(1000);
    const uint64_t budget = BudgetForSample(bytes, claims);
    EXPECT_GE(ShareMemory(budget, claims).samples, bytes);
    EXPECT_GE(budget, least + samples);
    if (budget == least + samples) continue;
    EXPECT_LT(ShareMemory(budget - 1, claims).samples, bytes);
  }
}

}  // namespace
}  // namespace stoker
