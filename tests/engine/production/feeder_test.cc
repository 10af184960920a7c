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

  explicit FeederTest(size_t pieces = 1) : LastStages(20, kBatch, std::nullopt, pieces) {
    feeder_.emplace(
        options_, order_, decoder_->plan(), /*run=*/1,
        Feeder::Neighbours{samples_, *assembler_, workers_, *finisher_, *lease_, reads_, nullptr,
                           lifecycle_, loader_trace_.emplace(trace_, *options_.source)});
    EXPECT_TRUE(lifecycle_.Start().ok());
  }

  // Pulls as a reader thread does, that has room for `most` requests, and returns the samples.
  std::vector<uint32_t> Pull(size_t most = 16) {
    std::vector<ReadRequest*> requests(most);
    requests.resize(feeder_->Pull(requests));
    std::vector<uint32_t> pulled;
    for (ReadRequest* read : requests) pulled.push_back(samples_.IndexOf(*read));
    return pulled;
  }

  // A worker's turn: takes the samples that are ready.
  static void Turn(void* context, uint32_t first, int) {
    static_cast<FeederTest*>(context)->ready_.push_back(first);
  }

  // Reads these samples' pieces that were pulled; a worker takes those that are ready.
  void Read(const std::vector<uint32_t>& samples) {
    for (const uint32_t index : samples) {
      feeder_->CompleteRead(samples_[index].read_of(samples_[index].piece));
    }
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

TEST_F(FeederTest, ASampleThatIsReadAgainComesBeforeNewRows) {
  const std::vector<uint32_t> first = Pull(2);
  ASSERT_EQ(first.size(), 2u) << "a reader has no more room";
  Read(first);
  feeder_->ReadAgain(first[1]);
  const std::vector<uint32_t> second = Pull(2);
  ASSERT_EQ(second.size(), 2u);
  EXPECT_EQ(second[0], first[1]);
  EXPECT_EQ(samples_[second[1]].claim.row, 2u);
  const std::vector<uint32_t> third = Pull(2);
  ASSERT_EQ(third.size(), 1u);
  EXPECT_EQ(samples_[third[0]].claim.row, 3u);
  Read({second[0], second[1], third[0]});
  for (const uint32_t index : {first[0], second[0], second[1], third[0]}) End(index);
  EXPECT_TRUE(NothingIsInWork());
}

TEST_F(FeederTest, ASampleThatIsReadAgainKeepsItsRow) {
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

// The state of a sample in the cache is that of the bytes that it had before.
TEST_F(FeederTest, ASubstituteAndARetryAreReadFromTheirFiles) {
  const std::vector<uint32_t> pulled = Pull();
  Read(pulled);
  for (const uint32_t index : pulled) samples_[index].cached.state = CachedSample::State::kPacked;
  feeder_->Substitute(pulled[0]);
  EXPECT_EQ(samples_[pulled[0]].cached.state, CachedSample::State::kNone);
  EXPECT_EQ(Pull(), std::vector<uint32_t>{pulled[0]});
  feeder_->Postpone(pulled[1]);
  for (const uint32_t index : {pulled[0], pulled[2], pulled[3]}) End(index);
  EXPECT_EQ(Pull(), std::vector<uint32_t>{pulled[1]});
  EXPECT_EQ(samples_[pulled[1]].cached.state, CachedSample::State::kNone);
  Read({pulled[1]});
  End(pulled[1]);
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

class FeederOfPairsTest : public FeederTest {
 protected:
  FeederOfPairsTest() : FeederTest(/*pieces=*/2) {}
};

TEST_F(FeederOfPairsTest, ASampleIsReadyWhenItsLastPieceHasArrived) {
  const std::vector<uint32_t> pulled = Pull();
  ASSERT_EQ(pulled.size(), kBatch);
  Read({pulled[1]});
  EXPECT_TRUE(ready_.empty());
  EXPECT_EQ(samples_.reading(), kBatch) << "no other read takes its place";
  EXPECT_EQ(Pull(), std::vector<uint32_t>{pulled[1]});
  EXPECT_EQ(samples_.reading(), kBatch);
  const SampleInFlight& sample = samples_[pulled[1]];
  EXPECT_EQ(sample.read.path, photos_.FileOf(sample.read.sample));
  EXPECT_EQ(sample.read_of(1).path, second_->FileOf(sample.read.sample));
  EXPECT_EQ(samples_.SnapshotOf(pulled[1]).piece, 1u);
  Read({pulled[1]});
  EXPECT_EQ(ready_, std::vector<uint32_t>{pulled[1]});
  for (const uint32_t index : {pulled[0], pulled[2], pulled[3]}) Read({index});
  Read(Pull());
  EXPECT_EQ(ready_.size(), kBatch);
  for (const uint32_t index : ready_) End(index);
  EXPECT_TRUE(NothingIsInWork());
  EXPECT_EQ(samples_.reading(), 0u);
  EXPECT_EQ(assembler_->Take({}).value().rows(), kBatch);
}

TEST_F(FeederOfPairsTest, FurtherPiecesComeBeforeNewRows) {
  const std::vector<uint32_t> pulled = Pull();
  Read({pulled[0], pulled[3]});
  std::vector<ReadRequest*> one(1);
  ASSERT_EQ(feeder_->Pull(one), 1u);
  EXPECT_EQ(one[0], &samples_[one[0]->tag].read_of(1));
  feeder_->CompleteRead(*one[0]);
  ASSERT_EQ(feeder_->Pull(one), 1u);
  EXPECT_EQ(one[0], &samples_[one[0]->tag].read_of(1));
  feeder_->CompleteRead(*one[0]);
  Read({pulled[1], pulled[2]});
  Read(Pull());
  for (const uint32_t index : ready_) End(index);
}

TEST_F(FeederOfPairsTest, ASampleIsReadyWhenAReadHasFailed) {
  const std::vector<uint32_t> pulled = Pull();
  samples_[pulled[0]].read.status = Error{Code::kNotFound, "gone"};
  Read({pulled[0]});
  EXPECT_EQ(ready_, std::vector<uint32_t>{pulled[0]});
  EXPECT_TRUE(Pull().empty());
  samples_[pulled[0]].read.status = {};
  Read({pulled[1], pulled[2], pulled[3]});
  Read(Pull());
  for (const uint32_t index : ready_) End(index);
}

// Read again, for another sample or without memory: from the first piece on, each time.
TEST_F(FeederOfPairsTest, SamplesTakenBackBeginAtTheFirstPiece) {
  const std::vector<uint32_t> pulled = Pull();
  Read(pulled);
  Read(Pull());
  ASSERT_EQ(ready_.size(), kBatch);
  ready_.clear();
  const uint64_t bad = samples_[pulled[1]].read.sample;
  feeder_->ReadAgain(pulled[0]);
  feeder_->Substitute(pulled[1]);
  feeder_->Postpone(pulled[2]);
  for (size_t piece = 0; piece < 2; ++piece) {
    EXPECT_EQ(samples_[pulled[2]].read_of(piece).buffer.capacity(), 0u) << "it waits without";
  }
  const auto read_both = [&](const std::vector<uint32_t>& samples) {
    for (uint32_t piece = 0; piece < 2; ++piece) {
      EXPECT_EQ(Pull(), samples);
      for (const uint32_t index : samples) {
        const SampleInFlight& sample = samples_[index];
        EXPECT_EQ(sample.piece, piece);
        EXPECT_EQ(sample.read_of(piece).path,
                  (piece == 0 ? photos_ : *second_).FileOf(sample.read.sample));
      }
      Read(samples);
    }
  };
  read_both({pulled[0], pulled[1]});
  EXPECT_NE(samples_[pulled[1]].read.sample, bad);
  EXPECT_EQ(ready_.size(), 2u);
  for (const uint32_t index : {pulled[0], pulled[1], pulled[3]}) End(index);
  read_both({pulled[2]});
  EXPECT_TRUE(samples_[pulled[2]].work.alone());
  EXPECT_TRUE(Pull().empty());
  End(pulled[2]);
  EXPECT_TRUE(NothingIsInWork());
}

// Between two pieces when work ends, and read afterwards: nobody pulls them any more.
TEST_F(FeederOfPairsTest, SamplesBetweenPiecesEndWhenWorkEnds) {
  const std::vector<uint32_t> pulled = Pull();
  Read({pulled[0], pulled[1]});
  EXPECT_FALSE(lifecycle_.TryHalt()) << "two are being read";
  EXPECT_TRUE(ready_.empty());
  Read({pulled[2]});
  EXPECT_FALSE(lifecycle_.TryHalt()) << "one is being read";
  Read({pulled[3]});
  EXPECT_TRUE(lifecycle_.TryHalt());
  EXPECT_TRUE(ready_.empty());
  EXPECT_EQ(samples_.reading(), 0u);
  EXPECT_EQ(assembler_->Take({}).error().code, Code::kCancelled);
}

// Samples that nobody pulls would count as work: other loaders could not wait for memory alone.
TEST_F(FeederOfPairsTest, SamplesBetweenPiecesEndWhenALoaderIsStopped) {
  const std::vector<uint32_t> pulled = Pull();
  Read({pulled[0], pulled[1]});
  lifecycle_.Stop([] {});
  EXPECT_TRUE(Pull().empty());
  EXPECT_EQ(samples_.reading(), 2u);
  Read({pulled[2], pulled[3]});
  EXPECT_TRUE(Pull().empty());
  EXPECT_TRUE(NothingIsInWork());
  EXPECT_EQ(samples_.reading(), 0u);
  EXPECT_TRUE(ready_.empty());
}

TEST_F(FeederTest, NothingIsPulledAfterStop) {
  lifecycle_.Stop([] {});
  EXPECT_TRUE(Pull().empty());
}

}  // namespace
}  // namespace stoker
