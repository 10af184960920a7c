// UnfinishedWork says where samples are, and notices when one moves.
#include "engine/production/unfinished_work.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/testing/samples/photo_folder.h"
#include "tests/testing/samples/photo_pairs.h"

namespace stoker {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using State = SamplesInFlight::State;

TEST(UnfinishedWork, NamesTheSamplesThatAreNeededFirst) {
  const testing::PhotoFolder photos(8, 2);
  const auto source = photos.Source();
  MemoryBudget budget(64 << 20);
  SamplesInFlight samples(8, budget, /*pieces=*/1);
  const UnfinishedWork work(*source, samples, /*map=*/nullptr, /*maps=*/nullptr);
  EXPECT_THAT(work.Describe(), StartsWith("none of its samples has begun"));

  const auto put = [&](uint32_t row, State state) {
    const uint32_t index = samples.Take().value();
    samples[index].claim.row = row;
    samples[index].read.sample = row;
    samples.SetState(index, state);
    return index;
  };
  put(4, State::kReading);
  const uint32_t second = put(1, State::kReading);
  put(2, State::kWorking);
  put(3, State::kPostponed);
  const std::string said = work.Describe();
  EXPECT_THAT(said, HasSubstr("2 reads have not ended (" + photos.FileOf(1) + ", " +
                              photos.FileOf(4) + ")"));
  EXPECT_THAT(said, HasSubstr("1 sample is being decoded (" + photos.FileOf(2) + ")"));
  EXPECT_THAT(said, HasSubstr("1 sample waits for memory (" + photos.FileOf(3) + ")"));

  const uint64_t before = work.State();
  EXPECT_EQ(work.State(), before) << "nothing has moved";
  samples.SetState(second, State::kReady);
  EXPECT_NE(work.State(), before);
}

TEST(UnfinishedWork, NamesTheFileOfThePieceThatIsRead) {
  const testing::PhotoPairs pairs(4, 2);
  const auto source = pairs.Source();
  MemoryBudget budget(64 << 20);
  SamplesInFlight samples(4, budget, source->pieces());
  const UnfinishedWork work(*source, samples, /*map=*/nullptr, /*maps=*/nullptr);
  const uint32_t index = samples.Take().value();
  SampleInFlight& sample = samples[index];
  sample.read.sample = 3;
  sample.unread = 2;
  for (auto& read : sample.ids_being_read) read = 1 + sample.read.sample;
  samples.SetState(index, State::kReading);
  EXPECT_THAT(work.Describe(), HasSubstr("(" + pairs.first().FileOf(3) + ")"));
  const uint64_t before = work.State();
  sample.ids_being_read[0] = 0;
  EXPECT_FALSE(sample.Arrive(1));
  EXPECT_THAT(work.Describe(), HasSubstr("(" + pairs.second().FileOf(3) + ")"));
  EXPECT_NE(work.State(), before);
}

}  // namespace
}  // namespace stoker
