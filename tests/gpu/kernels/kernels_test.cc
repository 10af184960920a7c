// gpu/*.cu on the CPU: each job's result has the same bytes as that of its plain version, and
// nothing else is written. Under the address sanitizer nothing else is read, either.
#include <gtest/gtest.h>

#include <algorithm>
#include <cfloat>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "core/batch/deferred_ops.h"
#include "gpu/backend/occupy_cuda.h"
#include "gpu/ops/deferred_ops_cuda.h"
#include "tests/gpu/kernels/grid.h"
#include "tests/gpu/ops/random_job.h"
#include "tests/testing/effort.h"

// Declared in <sanitizer/asan_interface.h>, which clang does not bring. Null without the address
// sanitizer.
extern "C" {
// NOLINTBEGIN(readability-identifier-naming, bugprone-reserved-identifier): the sanitizer's
[[gnu::weak]] void __asan_poison_memory_region(const volatile void*, size_t);
[[gnu::weak]] void __asan_unpoison_memory_region(const volatile void*, size_t);
// NOLINTEND(readability-identifier-naming, bugprone-reserved-identifier)
}

namespace stoker {
namespace {

using testing::Effort;
using testing::GridClock;
using testing::JobSize;
using testing::LaunchedKernels;
using testing::LoadedKernels;
using testing::MadeJob;
using testing::Random;
using testing::RandomJob;
using testing::RandomJobOf;

// Memory whose surroundings are checked.
class Guarded {
 public:
  Guarded(size_t bytes, size_t shift)
      : bytes_(bytes),
        all_(static_cast<uint8_t*>(::operator new(kGuard + shift + bytes + kGuard, kAlignment))),
        data_(all_ + kGuard + shift) {
    std::fill(all_, end(), kFill);
    if (__asan_poison_memory_region == nullptr) return;
    __asan_poison_memory_region(all_, before());
    __asan_poison_memory_region(data_ + bytes_, kGuard);
  }
  Guarded(size_t bytes, size_t shift, const void* from) : Guarded(bytes, shift) {
    if (bytes > 0) std::memcpy(data_, from, bytes);
  }
  ~Guarded() {
    Open();
    ::operator delete(all_, kAlignment);
  }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  uint8_t* data() const { return data_; }
  std::span<const uint8_t> bytes() const { return {data_, bytes_}; }
  bool Intact() const {
    Open();
    const auto untouched = [](uint8_t byte) { return byte == kFill; };
    return std::all_of(all_, data_, untouched) && std::all_of(data_ + bytes_, end(), untouched);
  }

 private:
  static constexpr std::align_val_t kAlignment{256};  // cudaMalloc's
  static constexpr size_t kGuard = 4096;
  static constexpr uint8_t kFill = 0xa5;

  size_t before() const { return static_cast<size_t>(data_ - all_); }
  uint8_t* end() const { return data_ + bytes_ + kGuard; }
  void Open() const {
    if (__asan_unpoison_memory_region == nullptr) return;
    __asan_unpoison_memory_region(all_, before() + bytes_ + kGuard);
  }

  const size_t bytes_;
  uint8_t* const all_;
  uint8_t* const data_;
};

class KernelsOnTheCpu : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(LoadDeferredOps(), 0); }
  void TearDown() override {
    std::cout << compared_ << " bytes compared\n";
    RecordProperty("bytes", std::to_string(compared_));
  }

  // `shift`: the bytes between a multiple of 256 and the first byte of the source.
  void ExpectSame(const MadeJob& made, size_t shift) {
    const Guarded from(made.from.size(), shift, made.from.data());
    const Guarded work(made.work_bytes(), 0, made.work.data());
    const Guarded to(made.result_bytes(), 0), wanted(made.result_bytes(), 0);
    DeferredOpsJob job = made.job;
    job.from = from.data();
    job.to = to.data();
    if (!made.work.empty()) job.work = work.data();
    ASSERT_EQ(LaunchDeferredOps(job, nullptr), 0) << made.ToString();
    job.to = wanted.data();
    ApplyDeferredPlain(job);
    const auto got = to.bytes(), right = wanted.bytes();
    const auto differs = std::mismatch(right.begin(), right.end(), got.begin());
    ASSERT_EQ(differs.first - right.begin(), static_cast<ptrdiff_t>(right.size()))
        << "the first byte that differs; " << made.ToString() << ", shifted by " << shift;
    ASSERT_TRUE(from.Intact() && work.Intact() && to.Intact())
        << "bytes outside were written; " << made.ToString() << ", shifted by " << shift;
    compared_ += got.size();
  }

  uint64_t compared_ = 0;
};

TEST_F(KernelsOnTheCpu, MatchPlainOnRandomJobs) {
  Random random(11);
  for (int n = 0; n < Effort(5000); ++n) {
    SCOPED_TRACE(n);
    const size_t shift = n % 2 == 0 ? 0 : random.Between(0, 15);
    ExpectSame(RandomJob(random), shift);
    if (HasFatalFailure()) return;
  }
}

// Sizes at which a group, a warp or a block is just full, just not, or holds one more.
JobSize EdgeSize(Random& random) {
  constexpr int kPixels[] = {1, 4, 8, 16, 32 * 4, 32 * 8, 32 * 16, 256, 256 * 4, 256 * 8, 256 * 16};
  const int pixels = std::max(1, kPixels[random.Between(0, 10)] + random.Between(-1, 1));
  const int heights = pixels % 4 == 0 ? 4 : 1;
  return {.rows = random.Between(1, 3), .height = heights, .width = pixels / heights};
}

// Finite numbers that overflow, underflow, or lie half-way between two others.
float EdgeNumber(Random& random) {
  constexpr float kNumbers[] = {0,         1,       0.5F,   FLT_MIN, FLT_TRUE_MIN, FLT_MAX,
                                1 / 2048., 65519.0, 65520., 65504.,  5.9e-8F,      1 / 256.};
  return kNumbers[random.Between(0, 11)] * (random.OneIn(2) ? 1.0F : -1.0F);
}

// The deferred operations of a job are changed in place.
void MakeNumbersHostile(Random& random, MadeJob& made) {
  DeferredOpsJob& job = made.job;
  if (job.dtype == DType::kU8) return;
  for (float& scale : job.scale) scale = EdgeNumber(random);
  for (float& bias : job.bias) bias = EdgeNumber(random);
  const size_t words = DeferredOpsBytes(job.boxes) / sizeof(uint64_t);
  for (uint64_t* row = made.work.data(); row != made.work.data() + made.work.size(); row += words) {
    DeferredOps work;
    auto* box = reinterpret_cast<uint8_t*>(row);
    std::memcpy(static_cast<void*>(&work), box, sizeof(work));
    if (random.OneIn(2)) work.own = EdgeNumber(random);
    if (random.OneIn(2)) work.others = EdgeNumber(random);
    std::memcpy(box, &work, sizeof(work));
    box += sizeof(work);
    for (uint32_t b = 0; b < job.boxes; ++b, box += sizeof(ErasedBox)) {
      ErasedBox erased;
      std::memcpy(static_cast<void*>(&erased), box, sizeof(erased));
      for (float& value : erased.value) value = EdgeNumber(random);
      std::memcpy(box, &erased, sizeof(erased));
    }
  }
}

TEST_F(KernelsOnTheCpu, MatchPlainOnHostileJobs) {
  Random random(12);
  for (int n = 0; n < Effort(2000); ++n) {
    SCOPED_TRACE(n);
    MadeJob made = RandomJobOf(random, EdgeSize(random));
    MakeNumbersHostile(random, made);
    ExpectSame(made, n % 4 == 0 ? random.Between(0, 15) : 0);
    if (HasFatalFailure()) return;
  }
}

TEST_F(KernelsOnTheCpu, MatchPlainOnPhotographs) {
  Random random(13);
  for (int n = 0; n < Effort(40); ++n) {
    SCOPED_TRACE(n);
    ExpectSame(RandomJobOf(random, {.rows = 3, .height = 224, .width = 224}), n % 4 == 0 ? 1 : 0);
    if (HasFatalFailure()) return;
  }
}

TEST_F(KernelsOnTheCpu, AnEmptyBatchLaunchesNothing) {
  const size_t launched = LaunchedKernels().size();
  MadeJob made;
  made.job = {.height = 3, .width = 8, .dtype = DType::kF32};
  ExpectSame(made, 0);
  EXPECT_EQ(LaunchedKernels().size(), launched);
}

// A kernel that is loaded at its first launch may wait for all work of the device.
TEST_F(KernelsOnTheCpu, AllThatJobsNeedHaveBeenLoaded) {
  EXPECT_EQ(LoadedKernels().size(), 4U * 2 * 3 * 2);  // types, layouts, extents, in groups or not
  Random random(15);
  for (int n = 0; n < 1000; ++n) ExpectSame(RandomJob(random), n % 2);
  EXPECT_EQ(LaunchedKernels(), LoadedKernels());
}

// There are more rows than a grid has blocks in its second dimension.
TEST_F(KernelsOnTheCpu, MatchPlainOnManyRows) {
  Random random(14);
  ExpectSame(RandomJobOf(random, {.rows = 65537, .height = 1, .width = 16}), 0);
}

TEST(OccupyOnTheCpu, EndsWhenTheTimeIsOver) {
  const uint64_t begin = GridClock();
  ASSERT_EQ(LaunchOccupy(100'000, nullptr), 0);
  const uint64_t passed = GridClock() - begin;
  EXPECT_GE(passed, 100'000U);
  EXPECT_LT(passed, 101'000U);
}

}  // namespace
}  // namespace stoker
