// BatchFinisher ends each row once, and a batch with its last row, without threads.
#include "engine/production/batch_finisher.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "tests/engine/production/last_stages.h"

namespace stoker {
namespace {

class BatchFinisherTest : public testing::LastStages {
 protected:
  static constexpr uint32_t kBatch = 3;

  BatchFinisherTest() : LastStages(9, kBatch, BatchMix{.choices = {MixUp{1}}}) {}

  // Claims the next row for a sample, which a worker has.
  uint32_t Claim() {
    const uint32_t index = samples_.Take().value();
    samples_[index].claim = assembler_->Claim().value();
    samples_[index].claim.slot->sample_ids[samples_[index].claim.row] = index;
    samples_[index].work = lease_->Begin();
    return index;
  }

  // The sample's row is left out.
  void Drop(uint32_t index) {
    const RowClaim& claim = samples_[index].claim;
    assembler_->AddBadRow(claim, {.row = claim.row, .action = OnBad::kDrop, .error = {}});
  }

  uint64_t mixes() const {
    LoaderStats stats;
    decoder_->AddTo(stats);
    return stats.stages.mix_ns;
  }
};

TEST_F(BatchFinisherTest, TheLastRowMixesAndCompletesTheBatch) {
  const uint32_t a = Claim(), b = Claim(), c = Claim();
  finisher_->End(c, 5, {}, 0);
  finisher_->End(a, 6, {}, 0);
  EXPECT_EQ(mixes(), 0u);
  EXPECT_FALSE(lease_->TryDrain(std::chrono::milliseconds(1))) << "a row is missing";
  finisher_->End(b, 7, {}, 0);
  EXPECT_GT(mixes(), 0u);
  EXPECT_TRUE(lease_->TryDrain(std::chrono::milliseconds(1))) << "its sample's work has ended";
  const Batch batch = assembler_->Take({}).value();
  EXPECT_EQ(batch.rows(), static_cast<int64_t>(kBatch));
  EXPECT_EQ(assembler_->last().work_ns, 5 + 6 + 7 + assembler_->last().mix_ns);
}

TEST_F(BatchFinisherTest, AnEndedSampleIsFree) {
  std::vector<uint32_t> taken{Claim()};
  while (const std::optional<uint32_t> other = samples_.Take()) taken.push_back(*other);
  EXPECT_EQ(taken.size(), samples_.count());
  finisher_->End(taken[0], 0, {}, 0);
  EXPECT_EQ(samples_.Take(), taken[0]);
  samples_.Give(taken[0]);
  for (uint32_t row = 1; row < kBatch; ++row) {
    samples_.Give(taken[row]);
    finisher_->End(Claim(), 0, {}, 0);
  }
}

TEST_F(BatchFinisherTest, AFailedBatchIsDeliveredAsItsErrorAndNotMixed) {
  const uint32_t a = Claim(), b = Claim(), c = Claim();
  finisher_->End(a, 0, {}, 0);
  finisher_->End(b, 0, Error{Code::kDataLoss, "damaged"}, 0);
  finisher_->End(c, 0, {}, 0);
  EXPECT_EQ(mixes(), 0u);
  EXPECT_EQ(assembler_->Take({}).error().cause, "damaged");
}

TEST_F(BatchFinisherTest, DroppedRowsAreTakenOutBeforeTheBatchIsMixed) {
  const uint32_t a = Claim(), b = Claim(), c = Claim();
  Drop(b);
  for (const uint32_t index : {a, b, c}) finisher_->End(index, 0, {}, 0);
  EXPECT_GT(mixes(), 0u);
  const Batch batch = assembler_->Take({}).value();
  ASSERT_EQ(batch.rows(), 2);
  EXPECT_EQ(batch.sample_ids()[0], a);
  EXPECT_EQ(batch.sample_ids()[1], c);
}

TEST_F(BatchFinisherTest, ABatchWithoutRowsIsCompleteAndNotMixed) {
  for (uint32_t row = 0; row < kBatch; ++row) {
    const uint32_t index = Claim();
    Drop(index);
    finisher_->End(index, 0, {}, 0);
  }
  EXPECT_EQ(mixes(), 0u);
  EXPECT_EQ(assembler_->Take({}).value().rows(), 0);
}

}  // namespace
}  // namespace stoker
