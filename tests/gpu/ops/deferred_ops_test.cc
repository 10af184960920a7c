#include "gpu/ops/deferred_ops_job.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/batch/deferred_ops.h"
#include "gpu/ops/deferred_ops-inl.h"
#include "tests/gpu/ops/random_job.h"
#include "tests/testing/effort.h"

namespace stoker {
namespace {

using testing::MadeJob;
using testing::Random;
using testing::RandomJob;
using testing::ResultOf;

TEST(ApplyDeferred, HostMatchesTheReference) {
  Random random(1);
  for (int n = 0; n < testing::Effort(4000); ++n) {
    const MadeJob made = RandomJob(random);
    ASSERT_TRUE(ResultOf(made, ApplyDeferredOnHost) == ResultOf(made, ApplyDeferredPlain))
        << n << ": " << made.ToString();
  }
}

bool InGroups(const DeferredOpsJob& job) {
  return deferred::WithKernel(
      job.dtype, job.layout, deferred::ExtentOf(job),
      [&](auto type, auto, auto) { return deferred::InGroups<type.value>(job); });
}

// Rows that are shifted by a byte cannot be handled in groups.
TEST(ApplyDeferred, GroupsMatchPixelByPixel) {
  Random random(2);
  const int jobs = testing::Effort(2000);
  int in_groups = 0;
  const auto count = [&](const DeferredOpsJob& job) { in_groups += InGroups(job) ? 1 : 0; };
  for (int n = 0; n < jobs; ++n) {
    const MadeJob made = RandomJob(random);
    ResultOf(made, count);
    ASSERT_TRUE(ResultOf(made, ApplyDeferredOnHost) == ResultOf(made, ApplyDeferredOnHost, 1))
        << n << ": " << made.ToString();
  }
  EXPECT_GT(in_groups, jobs / 4);
  EXPECT_LT(in_groups, jobs);
  in_groups = 0;
  for (int n = 0; n < jobs; ++n) ResultOf(RandomJob(random), count, 1);
  EXPECT_EQ(in_groups, 0);
}

// The expected values of the three pixels are listed one by one.
TEST(ApplyDeferred, AppliesOperationsInTheDocumentedOrder) {
  MadeJob made;
  made.job = {.rows = 1, .height = 1, .width = 3, .dtype = DType::kF32};
  const float scale[3] = {1, 2, 4}, bias[3] = {0, 100, 200};
  std::copy_n(scale, 3, made.job.scale);
  std::copy_n(bias, 3, made.job.bias);
  made.job.layout = Layout::kNchw;
  made.from = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  made.job.boxes = 2;
  const DeferredOps work{.mirror = 1};
  const ErasedBox erased[2] = {{.box = {0, 0, 2, 1}, .value = {-1, -2, -3}},
                               {.box = {1, 0, 1, 1}, .value = {-4, -5, -6}}};
  made.work.resize(DeferredOpsBytes(2) / sizeof(uint64_t));
  std::memcpy(made.work.data(), &work, sizeof(work));
  std::memcpy(made.work.data() + sizeof(work) / sizeof(uint64_t), erased, sizeof(erased));
  const std::vector<float> wanted = {-1, -4, 1, -2, -5, 104, -3, -6, 212};
  std::vector<float> got(9);
  for (const auto finish : {ApplyDeferredOnHost, ApplyDeferredPlain}) {
    const std::vector<uint8_t> bytes = ResultOf(made, finish);
    std::memcpy(got.data(), bytes.data(), bytes.size());
    EXPECT_EQ(got, wanted);
  }
}

// ∞ × 0 and ∞ − ∞ give the same quiet NaN on every machine.
TEST(ApplyDeferred, NaNIsCanonical) {
  MadeJob made;
  made.job = {.rows = 2, .height = 1, .width = 8, .dtype = DType::kF16};
  std::fill_n(made.job.scale, 3, 1e6F);
  made.from.assign(48, 200);
  std::fill_n(made.from.begin(), 24, uint8_t{0});
  made.job.mixes = true;
  for (int row = 0; row < 2; ++row) {
    const DeferredOps work{.mixing = RowMixing::kBlend, .own = 1, .others = 0};
    const size_t words = made.work.size();
    made.work.resize(words + sizeof(work) / sizeof(uint64_t));
    std::memcpy(made.work.data() + words, &work, sizeof(work));
  }
  for (const auto finish : {ApplyDeferredOnHost, ApplyDeferredPlain}) {
    const std::vector<uint8_t> bytes = ResultOf(made, finish);
    std::vector<uint16_t> halves(48);
    std::memcpy(halves.data(), bytes.data(), bytes.size());
    for (size_t i = 0; i < 24; ++i) EXPECT_EQ(halves[i], 0x7e00);   // 0 × 1 + ∞ × 0
    for (size_t i = 24; i < 48; ++i) EXPECT_EQ(halves[i], 0x7c00);  // ∞ × 1 + 0 × 0
  }
}

TEST(ApplyDeferred, EmptyBatchIsNoOp) {
  MadeJob made;
  made.job = {.height = 3, .width = 8, .dtype = DType::kF32};
  for (const auto finish : {ApplyDeferredOnHost, ApplyDeferredPlain}) {
    EXPECT_TRUE(ResultOf(made, finish).empty());
  }
}

}  // namespace
}  // namespace stoker
