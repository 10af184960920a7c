// SamplesInFlight limits the samples in flight, hands them out in the order of need and accounts
// for their buffers.
#include "engine/production/samples/samples_in_flight.h"

#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <vector>

#include "core/memory/buffer.h"
#include "engine/memory/memory_plan.h"

namespace stoker {
namespace {

constexpr uint64_t kPlentyForSamples = uint64_t{1} << 30;
const uint64_t kBufferBytes = GrowingBuffer::MappedBytes(kReadBufferBytes);

std::vector<uint32_t> TakeAllSamples(SamplesInFlight& samples) {
  std::vector<uint32_t> taken;
  while (const std::optional<uint32_t> index = samples.Take()) taken.push_back(*index);
  return taken;
}

TEST(SamplesInFlight, TakesEachSampleOnceUpToTheLimit) {
  MemoryBudget memory(kPlentyForSamples);
  SamplesInFlight samples(16, memory, /*pieces=*/1);
  std::vector<uint32_t> taken = TakeAllSamples(samples);
  EXPECT_EQ(std::set<uint32_t>(taken.begin(), taken.end()).size(), 16u);
  EXPECT_EQ(memory.used(), 16 * kBufferBytes) << "each has a buffer";
  for (const uint32_t index : taken) samples.Give(index);
  samples.SetLimits(/*reads=*/4, /*in_use=*/10);
  EXPECT_EQ(TakeAllSamples(samples).size(), 10u);
}

TEST(SamplesInFlight, ReturnsBuffersBeyondTheLimitToTheBudget) {
  MemoryBudget memory(kPlentyForSamples);
  SamplesInFlight samples(16, memory, /*pieces=*/1);
  const std::vector<uint32_t> taken = TakeAllSamples(samples);
  for (size_t i = 0; i < 8; ++i) samples.Give(taken[i]);
  samples.SetLimits(/*reads=*/4, /*in_use=*/10);
  for (size_t i = 8; i < 16; ++i) samples.Give(taken[i]);
  EXPECT_EQ(memory.used(), 10 * kBufferBytes);
  samples.FreeBuffers();
  EXPECT_EQ(memory.used(), 0u);
}

TEST(SamplesInFlight, GivesNoSampleWithoutRoomForItsBuffer) {
  MemoryBudget memory(2 * kBufferBytes);
  SamplesInFlight samples(16, memory, /*pieces=*/1);
  const std::vector<uint32_t> taken = TakeAllSamples(samples);
  ASSERT_EQ(taken.size(), 2u);
  EXPECT_TRUE(samples.waiting());
  samples.Give(taken[0]);
  EXPECT_TRUE(samples.Take());
}

TEST(SamplesInFlight, GivesOneSampleEvenWithoutRoomForABuffer) {
  MemoryBudget memory(0);
  SamplesInFlight samples(16, memory, /*pieces=*/1);
  EXPECT_EQ(TakeAllSamples(samples).size(), 1u);
}

TEST(SamplesInFlight, EachPieceHasABuffer) {
  MemoryBudget memory(kPlentyForSamples);
  SamplesInFlight samples(16, memory, /*pieces=*/3);
  const std::vector<uint32_t> taken = TakeAllSamples(samples);
  EXPECT_EQ(memory.used(), 16 * 3 * kBufferBytes);
  for (const uint32_t index : taken) {
    for (size_t piece = 0; piece < 3; ++piece) {
      EXPECT_EQ(SamplesInFlight::IndexOf(samples[index].read_of(piece)), index);
    }
  }
  samples.SetLimits(/*reads=*/4, /*in_use=*/10);
  for (const uint32_t index : taken) samples.Give(index);
  EXPECT_EQ(memory.used(), 10 * 3 * kBufferBytes);
  samples.FreeBuffers();
  EXPECT_EQ(memory.used(), 0u);
}

TEST(SamplesInFlight, GivesNoSampleWithoutRoomForAllItsBuffers) {
  MemoryBudget memory(5 * kBufferBytes);
  SamplesInFlight samples(16, memory, /*pieces=*/2);
  const std::vector<uint32_t> taken = TakeAllSamples(samples);
  ASSERT_EQ(taken.size(), 2u);
  EXPECT_EQ(memory.used(), 4 * kBufferBytes) << "buffers of some pieces are of no use";
  EXPECT_TRUE(samples.waiting());
  samples.Give(taken[0]);
  EXPECT_TRUE(samples.Take());
}

TEST(SamplesInFlight, SamplesInMemoryNeedNoBuffers) {
  MemoryBudget memory(0);
  SamplesInFlight samples(16, memory, /*pieces=*/0);
  EXPECT_EQ(TakeAllSamples(samples).size(), 16u);
}

TEST(SamplesInFlight, TakesTheReadySampleNeededFirst) {
  MemoryBudget memory(kPlentyForSamples);
  SamplesInFlight samples(16, memory, /*pieces=*/1);
  const std::vector<RowClaim> rows = {{.batch = 1, .row = 0},
                                      {.batch = 0, .row = 3},
                                      {.batch = 2, .row = 1},
                                      {.batch = 0, .row = 2}};
  for (const RowClaim& row : rows) {
    const uint32_t index = samples.Take().value();
    samples[index].claim = row;
    samples.SetReady(index);
  }
  EXPECT_EQ(samples.ready(), 4u);
  for (const size_t next : {3, 1, 0, 2}) {
    const RowClaim& claim = samples[samples.TakeReady().value()].claim;
    EXPECT_EQ(claim.batch, rows[next].batch);
    EXPECT_EQ(claim.row, rows[next].row);
  }
  EXPECT_FALSE(samples.TakeReady());
}

TEST(SamplesInFlight, AFurtherSampleMakesTheNextTaskSurplus) {
  MemoryBudget memory(kPlentyForSamples);
  SamplesInFlight samples(16, memory, /*pieces=*/1);
  const auto add = [&samples](uint64_t batch) {
    const uint32_t index = samples.Take().value();
    samples[index].claim.batch = batch;
    samples.SetReady(index);
  };
  const auto batch_of = [&samples](std::optional<uint32_t> taken) {
    return samples[taken.value()].claim.batch;
  };
  EXPECT_FALSE(samples.TakeFurther(0));
  for (const uint64_t batch : {2, 0, 1}) add(batch);
  EXPECT_FALSE(samples.TakeFurther(4));
  EXPECT_EQ(batch_of(samples.TakeFurther(3)), 0u);
  EXPECT_EQ(batch_of(samples.TakeFurther(2)), 1u);
  EXPECT_EQ(samples.ready(), 1u);
  // Two of the tasks are surplus, and stay so when another sample becomes ready.
  add(3);
  EXPECT_FALSE(samples.TakeReady());
  EXPECT_FALSE(samples.TakeReady());
  EXPECT_EQ(batch_of(samples.TakeReady()), 2u);
  EXPECT_EQ(batch_of(samples.TakeReady()), 3u);
  EXPECT_FALSE(samples.TakeReady());
  EXPECT_FALSE(samples.TakeFurther(0));
}

TEST(SamplesInFlight, ReadsAreCountedAndLimited) {
  MemoryBudget memory(kPlentyForSamples);
  SamplesInFlight samples(16, memory, /*pieces=*/1);
  samples.SetLimits(/*reads=*/2, /*in_use=*/16);
  const uint32_t first = samples.Take().value(), second = samples.Take().value();
  samples.BeginRead(first);
  EXPECT_TRUE(samples.MayRead());
  samples.BeginRead(second);
  EXPECT_FALSE(samples.MayRead());
  EXPECT_EQ(samples[second].reads_in_flight, 2u);
  EXPECT_EQ(samples.IndexOf(samples[second].read), second);
  samples.EndRead();
  EXPECT_TRUE(samples.MayRead());
}

TEST(SamplesInFlight, WaitsUntilHalfOfTheSamplesAreFree) {
  MemoryBudget memory(kPlentyForSamples);
  SamplesInFlight samples(16, memory, /*pieces=*/1);
  samples.SetLimits(/*reads=*/16, /*in_use=*/16);
  std::vector<uint32_t> taken;
  for (int i = 0; i < 8; ++i) taken.push_back(samples.Take().value());
  EXPECT_FALSE(samples.TooFewFree());
  taken.push_back(samples.Take().value());
  EXPECT_TRUE(samples.TooFewFree());
  EXPECT_TRUE(samples.waiting());
  EXPECT_TRUE(samples.BehindWorkers()) << "none of the nine is being read";
  samples.Give(taken.back());
  EXPECT_FALSE(samples.TooFewFree());
  EXPECT_FALSE(samples.waiting());
}

}  // namespace
}  // namespace stoker
