// Feeder gives each row to one sample, and keeps a sample until it ends, without threads.
#include "engine/production/feeder.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "tests/engine/production/last_stages.h"

namespace stoker {
namespace {

class FeederTest : public testing::LastStages {
 protected:
  static constexpr uint32_t kBatch = 4;

  FeederTest() : LastStages(20, kBatch) {
    feeder_.emplace(
        options_, order_, decoder_->plan(), /*run=*/1,
        Feeder::Neighbours{samples_, *assembler_, workers_, *finisher_, *lease_, reads_, nullptr,
                           lifecycle_, loader_trace_.emplace(trace_, *options_.source)});
    EXPECT_TRUE(lifecycle_.Start().ok());
  }

  // Pulls as a reader thread does, and returns the samples.
  std::vector<uint32_t> Pull() {
    std::vector<ReadRequest*> requests(16);
    requests.resize(feeder_->Pull(requests));
    std::vector<uint32_t> pulled;
    for (ReadRequest* read : requests) pulled.push_back(samples_.IndexOf(*read));
    return pulled;
  }

  // A worker's turn: takes the samples that are ready.
  static void Turn(void* context, uint32_t first, int) {
    static_cast<FeederTest*>(context)->ready_.push_back(first);
  }

  // Reads these samples; a worker takes them.
  void Read(const std::vector<uint32_t>& samples) {
    for (const uint32_t index : samples) feeder_->CompleteRead(samples_[index].read);
    while (executor_.RunOne()) {
    }
  }

  void End(uint32_t index) {
    samples_[index].claim.slot->sample_ids[samples_[index].claim.row] = samples_[index].read.sample;
    finisher_->End(index, 0, {}, 0);
  }

  bool NothingIsInWork() { return lease_->TryDrain(std::chrono::milliseconds(1)); }

  std::optional<LoaderTrace> loader_trace_;
  testing::ManualExecutor executor_{1};
  WorkerTasks workers_{samples_, *lease_, executor_, &FeederTest::Turn, this};
  std::optional<Feeder> feeder_;
  Lifecycle lifecycle_{{.begin = [] { return Status(); },
                        .give_up = [this] { feeder_->DropWaiting(); },
                        .no_more = [] { return true; },
                        .complete = [this] { return NothingIsInWork(); }}};
  std::vector<uint32_t> ready_;
};

TEST_F(FeederTest, RowsAreReadInOrderAndGivenToWorkers) {
  const std::vector<uint32_t> pulled = Pull();
  ASSERT_EQ(pulled.size(), kBatch);
  EXPECT_TRUE(Pull().empty()) << "all rows are claimed";
  Read({pulled[2], pulled[0]});
  EXPECT_EQ(ready_.size(), 2u);
  Read({pulled[1], pulled[3]});
  for (const uint32_t index : ready_) End(index);
  EXPECT_TRUE(NothingIsInWork());
  const Batch batch = assembler_->Take({}).value();
  for (uint32_t row = 0; row < kBatch; ++row) {
    EXPECT_EQ(batch.sample_ids()[row], order_.At({}, row).sample);
  }
}

TEST_F(FeederTest, ASampleThatIsReadAgainComesBeforeNewRowsAndKeepsItsOwn) {
  const std::vector<uint32_t> pulled = Pull();
  Read(pulled);
  const uint64_t id = samples_[pulled[1]].read.sample;
  feeder_->ReadAgain(pulled[1]);
  EXPECT_EQ(Pull(), std::vector<uint32_t>{pulled[1]});
  EXPECT_EQ(samples_[pulled[1]].read.sample, id);
  EXPECT_EQ(samples_[pulled[1]].claim.row, 1u);
  Read({pulled[1]});
  for (const uint32_t index : pulled) End(index);
}

TEST_F(FeederTest, ASubstituteTakesTheRowAndTheDraws) {
  const std::vector<uint32_t> pulled = Pull();
  Read(pulled);
  const SampleInFlight& sample = samples_[pulled[2]];
  const DrawKey draw = sample.draw;
  const uint64_t bad = sample.read.sample;
  feeder_->Substitute(pulled[2]);
  EXPECT_EQ(Pull(), std::vector<uint32_t>{pulled[2]});
  EXPECT_NE(sample.read.sample, bad);
  EXPECT_EQ(sample.read.sample, order_.SubstituteFor(draw.epoch, draw.position, 0));
  EXPECT_EQ(sample.read.path, photos_.FileOf(sample.read.sample));
  EXPECT_EQ(sample.claim.row, 2u);
  EXPECT_EQ(sample.draw.position, draw.position);
  EXPECT_EQ(sample.substitutes, 1u);
  Read({pulled[2]});
  for (const uint32_t index : pulled) End(index);
}

TEST_F(FeederTest, ASampleWithoutMemoryIsReadAgainAlone) {
  const std::vector<uint32_t> pulled = Pull();
  Read(pulled);
  feeder_->Postpone(pulled[0]);
  EXPECT_EQ(samples_[pulled[0]].read.buffer.capacity(), 0u) << "it waits without memory";
  EXPECT_TRUE(Pull().empty()) << "others are in work";
  for (const uint32_t index : {pulled[1], pulled[2], pulled[3]}) End(index);
  EXPECT_EQ(Pull(), std::vector<uint32_t>{pulled[0]});
  EXPECT_TRUE(samples_[pulled[0]].work.alone());
  EXPECT_TRUE(Pull().empty());
  Read({pulled[0]});
  End(pulled[0]);
}

// Given back before work ends, and after it: nobody pulls them any more.
TEST_F(FeederTest, SamplesThatWaitEndWhenWorkEnds) {
  const std::vector<uint32_t> pulled = Pull();
  Read(pulled);
  feeder_->ReadAgain(pulled[0]);
  feeder_->Postpone(pulled[1]);
  EXPECT_FALSE(lifecycle_.TryHalt()) << "two are in a worker's hands";
  feeder_->Substitute(pulled[2]);
  feeder_->Postpone(pulled[3]);
  EXPECT_TRUE(lifecycle_.TryHalt());
  EXPECT_EQ(assembler_->Take({}).error().code, Code::kCancelled);
}

TEST_F(FeederTest, NothingIsPulledAfterStop) {
  lifecycle_.Stop([] {});
  EXPECT_TRUE(Pull().empty());
}

}  // namespace
}  // namespace stoker
