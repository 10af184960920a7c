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

  // Reads these samples' first pieces; a worker takes those that are ready.
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
  const uint64_t other = order_.SubstituteFor(draw.epoch, draw.position, 0);
  feeder_->Substitute(pulled[2], other);
  EXPECT_EQ(Pull(), std::vector<uint32_t>{pulled[2]});
  EXPECT_NE(sample.read.sample, bad);
  EXPECT_EQ(sample.read.sample, other);
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
  feeder_->Substitute(pulled[0], /*substitute=*/0);
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
  feeder_->Substitute(pulled[2], /*substitute=*/0);
  feeder_->Postpone(pulled[3]);
  EXPECT_TRUE(lifecycle_.TryHalt());
  EXPECT_EQ(assembler_->Take({}).error().code, Code::kCancelled);
}

class FeederOfPairsTest : public FeederTest {
 protected:
  FeederOfPairsTest() : FeederTest(/*pieces=*/2) {}

  // Pulls as a reader thread does, and returns the requests: both pieces of a sample, then those of
  // the next one.
  std::vector<ReadRequest*> PullReads(size_t most = 16) {
    std::vector<ReadRequest*> requests(most);
    requests.resize(feeder_->Pull(requests));
    return requests;
  }

  void Complete(const std::vector<ReadRequest*>& reads) {
    for (ReadRequest* const read : reads) feeder_->CompleteRead(*read);
    Read({});
  }

  void EndReady() {
    for (const uint32_t index : std::exchange(ready_, {})) End(index);
  }
};

TEST_F(FeederOfPairsTest, ThePiecesOfASampleAreReadAtTheSameTime) {
  const std::vector<ReadRequest*> reads = PullReads();
  ASSERT_EQ(reads.size(), 2 * kBatch);
  for (uint32_t row = 0; row < kBatch; ++row) {
    const SampleInFlight& sample = samples_[reads[2 * row]->tag];
    EXPECT_EQ(sample.claim.row, row);
    EXPECT_EQ(reads[2 * row], &sample.read);
    EXPECT_EQ(reads[2 * row + 1], &sample.read_of(1));
    EXPECT_EQ(sample.read.path, photos_.FileOf(sample.read.sample));
    EXPECT_EQ(sample.read_of(1).path, second_->FileOf(sample.read.sample));
  }
  EXPECT_EQ(samples_.reading(), kBatch) << "samples";
  Complete(reads);
  EndReady();
}

TEST_F(FeederOfPairsTest, ASampleIsReadyWhenItsLastPieceHasArrived) {
  const std::vector<ReadRequest*> reads = PullReads();
  const uint32_t second = reads[2]->tag;
  EXPECT_EQ(samples_.SnapshotOf(second).piece, 0u);
  Complete({reads[2]});
  EXPECT_TRUE(ready_.empty());
  EXPECT_EQ(samples_.reading(), kBatch) << "no other read takes its place";
  EXPECT_EQ(samples_.SnapshotOf(second).piece, 1u);
  EXPECT_EQ(samples_.SnapshotOf(second).unread, 1u);
  Complete({reads[3]});
  EXPECT_EQ(ready_, std::vector<uint32_t>{second});
  Complete({reads[1], reads[0], reads[5], reads[6], reads[4], reads[7]});
  EXPECT_EQ(ready_.size(), kBatch);
  EndReady();
  EXPECT_TRUE(NothingIsInWork());
  EXPECT_EQ(samples_.reading(), 0u);
  EXPECT_EQ(assembler_->Take({}).value().rows(), kBatch);
}

TEST_F(FeederOfPairsTest, PiecesWithoutRoomComeBeforeNewRows) {
  const std::vector<ReadRequest*> first = PullReads(3);
  ASSERT_EQ(first.size(), 3u);
  EXPECT_EQ(samples_.reading(), 2u);
  Complete({first[2]});
  EXPECT_TRUE(ready_.empty()) << "its other piece has not begun";
  const std::vector<ReadRequest*> rest = PullReads(1);
  ASSERT_EQ(rest.size(), 1u);
  EXPECT_EQ(rest[0], &samples_[first[2]->tag].read_of(1));
  EXPECT_EQ(samples_.reading(), 2u);
  const std::vector<ReadRequest*> others = PullReads();
  ASSERT_EQ(others.size(), 4u);
  EXPECT_EQ(samples_[others[0]->tag].claim.row, 2u);
  Complete({first[0], first[1], rest[0]});
  Complete(others);
  EXPECT_EQ(ready_.size(), kBatch);
  EndReady();
  EXPECT_TRUE(NothingIsInWork());
}

TEST_F(FeederOfPairsTest, ASampleWithAFailedReadIsReadyWhenTheOthersHaveEnded) {
  const std::vector<ReadRequest*> reads = PullReads();
  reads[0]->status = Error{Code::kNotFound, "gone"};
  Complete({reads[0]});
  EXPECT_TRUE(ready_.empty());
  Complete({reads[1]});
  EXPECT_EQ(ready_, std::vector<uint32_t>{reads[0]->tag});
  Complete({reads.begin() + 2, reads.end()});
  EndReady();
}

// Read again, for another sample or without memory: all pieces, each time.
TEST_F(FeederOfPairsTest, SamplesTakenBackAreReadWithAllPieces) {
  Complete(PullReads());
  ASSERT_EQ(ready_.size(), kBatch);
  const std::vector<uint32_t> taken = std::exchange(ready_, {});
  const uint64_t other = samples_[taken[1]].read.sample == 0 ? 1 : 0;
  feeder_->ReadAgain(taken[0]);
  feeder_->Substitute(taken[1], other);
  feeder_->Postpone(taken[2]);
  for (size_t piece = 0; piece < 2; ++piece) {
    EXPECT_EQ(samples_[taken[2]].read_of(piece).buffer.capacity(), 0u) << "it waits without";
  }
  const auto read_both = [&](const std::vector<uint32_t>& samples) {
    const std::vector<ReadRequest*> reads = PullReads();
    ASSERT_EQ(reads.size(), 2 * samples.size());
    for (size_t i = 0; i < reads.size(); ++i) {
      const SampleInFlight& sample = samples_[samples[i / 2]];
      EXPECT_EQ(reads[i], &sample.read_of(i % 2));
      EXPECT_EQ(reads[i]->path, (i % 2 == 0 ? photos_ : *second_).FileOf(sample.read.sample));
    }
    Complete(reads);
  };
  read_both({taken[0], taken[1]});
  EXPECT_EQ(samples_[taken[1]].read.sample, other);
  EXPECT_EQ(ready_.size(), 2u);
  for (const uint32_t index : {taken[0], taken[1], taken[3]}) End(index);
  read_both({taken[2]});
  EXPECT_TRUE(samples_[taken[2]].work.alone());
  EXPECT_TRUE(Pull().empty());
  End(taken[2]);
  EXPECT_TRUE(NothingIsInWork());
}

// Half begun when work ends, before and after: nobody pulls the other pieces any more.
TEST_F(FeederOfPairsTest, SamplesThatAreHalfBegunEndWhenWorkEnds) {
  const std::vector<ReadRequest*> reads = PullReads(3);
  Complete({reads[2]});
  EXPECT_FALSE(lifecycle_.TryHalt()) << "one is being read";
  EXPECT_EQ(samples_.reading(), 1u) << "the other has ended";
  for (uint32_t row = 2; row < kBatch; ++row) {
    const std::vector<ReadRequest*> late = PullReads(1);
    ASSERT_EQ(late.size(), 1u);
    EXPECT_EQ(samples_[late[0]->tag].claim.row, row);
    Complete(late);
  }
  EXPECT_TRUE(ready_.empty()) << "none of them has all pieces";
  EXPECT_EQ(samples_.reading(), 1u);
  EXPECT_FALSE(lifecycle_.TryHalt()) << "one is being read";
  Complete({reads[0], reads[1]});
  EXPECT_EQ(ready_, std::vector<uint32_t>{reads[0]->tag});
  EndReady();
  EXPECT_TRUE(lifecycle_.TryHalt());
  EXPECT_EQ(samples_.reading(), 0u);
  EXPECT_EQ(assembler_->Take({}).error().code, Code::kCancelled);
}

// Samples that nobody pulls would count as work: other loaders could not wait for memory alone.
TEST_F(FeederOfPairsTest, SamplesThatAreHalfBegunEndWhenALoaderIsStopped) {
  const std::vector<ReadRequest*> reads = PullReads(3);
  lifecycle_.Stop([] {});
  EXPECT_TRUE(Pull().empty());
  EXPECT_EQ(samples_.reading(), 2u);
  Complete({reads[2]});
  EXPECT_EQ(samples_.reading(), 1u) << "it has ended";
  EXPECT_TRUE(ready_.empty());
  Complete({reads[0], reads[1]});
  EXPECT_EQ(ready_, std::vector<uint32_t>{reads[0]->tag});
  EndReady();
  EXPECT_TRUE(NothingIsInWork());
  EXPECT_EQ(samples_.reading(), 0u);
}

TEST_F(FeederTest, NothingIsPulledAfterStop) {
  lifecycle_.Stop([] {});
  EXPECT_TRUE(Pull().empty());
}

}  // namespace
}  // namespace stoker
