// The assembler delivers batches in order, whatever order the rows are finished in.
#include "engine/production/batches/assembler.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace stoker {
namespace {

class AssemblerTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kBatch = 4;
  static constexpr uint64_t kSamples = 10;  // batches of 4, 4 and 2 rows

  static Sampler Order() {
    return Sampler::Make({.samples = kSamples, .batch_size = kBatch}).value();
  }

  Assembler Make(int depth, Schedule schedule = Schedule::kEpochs, uint64_t epochs = 2) {
    return Assembler(order_, pool_, depth, /*max_depth=*/4,
                     BatchSequence(schedule, order_.batches_per_epoch(), {},
                                   order_.batches_per_epoch(), epochs));
  }

  static Assembler::BatchState RowsDone(Assembler& assembler, const RowClaim& row,
                                        Status status = {}) {
    for (uint32_t r = row.row; r < row.row + row.rows; ++r) row.slot->sample_ids[r] = r;
    const Assembler::BatchState state = assembler.RowsDone(row, {.work_ns = 10}, std::move(status));
    if (state != Assembler::BatchState::kRowsMissing) assembler.Complete(row, {}, {});
    return state;
  }

  // Claims and finishes rows until none are left.
  static int CompleteAllRows(Assembler& assembler) {
    int rows = 0;
    while (const std::optional<RowClaim> row = assembler.Claim()) {
      (void)RowsDone(assembler, *row);
      ++rows;
    }
    return rows;
  }

  static Error Bad(const std::string& cause) { return {Code::kDataLoss, cause}; }

  const Sampler order_ = Order();
  MemoryBudget budget_{64 << 20};
  const std::shared_ptr<SlotPool> pool_ =
      SlotPool::Make(
          {.columns = {{"x", DType::kU8, {8}}}, .batch_size = kBatch, .working_slots = 4},
          Reservation(budget_))
          .value();
};

TEST_F(AssemblerTest, HandsOutEachRowOnceAndNoMoreBatchesThanItsDepth) {
  Assembler assembler = Make(/*depth=*/2);
  for (uint64_t batch = 0; batch < 2; ++batch) {
    for (uint32_t row = 0; row < kBatch; ++row) {
      const std::optional<RowClaim> claim = assembler.Claim();
      ASSERT_TRUE(claim);
      EXPECT_EQ(claim->batch, batch);
      EXPECT_EQ(claim->row, row);
      EXPECT_EQ(claim->slot->index, batch);
      (void)RowsDone(assembler, *claim);
    }
  }
  EXPECT_FALSE(assembler.Claim()) << "two batches are in production";
  EXPECT_EQ(assembler.Take({}).value().index(), 0u);
  EXPECT_EQ(CompleteAllRows(assembler), 2) << "the third batch is short";
}

TEST_F(AssemblerTest, DeliversInOrderHoweverRowsComplete) {
  Assembler assembler = Make(/*depth=*/2);
  std::vector<RowClaim> rows;
  while (const std::optional<RowClaim> row = assembler.Claim()) rows.push_back(*row);
  ASSERT_EQ(rows.size(), 2 * kBatch);
  for (size_t i = rows.size(); i-- > 0;) {
    const bool last_of_its_batch = i % kBatch == 0;
    EXPECT_EQ(RowsDone(assembler, rows[i]), last_of_its_batch
                                                ? Assembler::BatchState::kWhole
                                                : Assembler::BatchState::kRowsMissing);
  }
  EXPECT_EQ(assembler.Take({}).value().index(), 0u);
  EXPECT_EQ(assembler.last().work_ns, 10 * kBatch);
  EXPECT_EQ(assembler.Take({}).value().index(), 1u);
}

TEST_F(AssemblerTest, GoesThroughTheEpochsAndEnds) {
  Assembler assembler = Make(/*depth=*/3);
  for (uint64_t epoch = 0; epoch < 2; ++epoch) {
    for (uint64_t index = 0; index < 3; ++index) {
      EXPECT_EQ(assembler.position(), (BatchName{epoch, index}));
      (void)CompleteAllRows(assembler);
      const Batch batch = assembler.Take({}).value();
      EXPECT_EQ(batch.epoch(), epoch);
      EXPECT_EQ(batch.index(), index);
      EXPECT_EQ(batch.rows(), index == 2 ? 2 : kBatch);
    }
  }
  EXPECT_EQ(assembler.position(), std::nullopt);
  EXPECT_FALSE(assembler.Claim());
}

TEST_F(AssemblerTest, AClaimNeverSpansTwoBatches) {
  Assembler assembler = Make(/*depth=*/3);
  std::vector<uint32_t> sizes;
  while (const std::optional<RowClaim> rows = assembler.Claim(3)) {
    sizes.push_back(rows->rows);
    (void)RowsDone(assembler, *rows);
  }
  EXPECT_EQ(sizes, (std::vector<uint32_t>{3, 1, 3, 1, 2}));
}

TEST_F(AssemblerTest, AFailedBatchReportsTheErrorOfItsLowestRow) {
  Assembler assembler = Make(/*depth=*/2);
  std::vector<RowClaim> rows;
  while (const std::optional<RowClaim> row = assembler.Claim()) rows.push_back(*row);
  EXPECT_EQ(RowsDone(assembler, rows[3], Bad("the third")), Assembler::BatchState::kRowsMissing);
  (void)RowsDone(assembler, rows[1], Bad("the first"));
  (void)RowsDone(assembler, rows[0]);
  EXPECT_EQ(RowsDone(assembler, rows[2]), Assembler::BatchState::kFailed);
  for (size_t i = kBatch; i < rows.size(); ++i) (void)RowsDone(assembler, rows[i]);
  const Result<Batch> failed = assembler.Take({});
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().cause, "the first (and 1 more sample of its batch)");
  EXPECT_EQ(assembler.Take({}).value().index(), 1u) << "the next one follows";
}

TEST_F(AssemblerTest, DepthGrowsAtOnceAndShrinksAsBatchesAreTaken) {
  Assembler assembler = Make(/*depth=*/1);
  EXPECT_EQ(CompleteAllRows(assembler), 4);
  assembler.SetDepth(3);
  EXPECT_EQ(CompleteAllRows(assembler), 4 + 2);
  assembler.SetDepth(1);
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(assembler.Take({}).value());
    EXPECT_EQ(CompleteAllRows(assembler), 0) << "more are in production than it may have";
  }
  EXPECT_TRUE(assembler.Take({}).value());
  EXPECT_EQ(CompleteAllRows(assembler), 4);
}

TEST_F(AssemblerTest, ReopenOpensAppendedBatches) {
  Assembler assembler = Make(/*depth=*/2, Schedule::kAppended);
  EXPECT_EQ(assembler.position(), std::nullopt);
  assembler.Append({7, 2});
  EXPECT_FALSE(assembler.Claim());
  EXPECT_TRUE(assembler.Reopen().value());
  EXPECT_FALSE(assembler.Reopen().value()) << "nothing is new";
  EXPECT_EQ(CompleteAllRows(assembler), 2);
  const Batch batch = assembler.Take({}).value();
  EXPECT_EQ(batch.epoch(), 7u);
  EXPECT_EQ(batch.index(), 2u);
}

// A smaller depth would not help: no batch is in production. It is not advised, either, if the
// depth is tuned.
TEST_F(AssemblerTest, WithoutMemoryForOneBatchTheDepthIsNotBlamed) {
  std::vector<Slot*> held;
  for (int i = 0; i < 4; ++i) held.push_back(pool_->Acquire());
  Assembler assembler = Make(/*depth=*/1);
  const Error error = assembler.Reopen().error();
  EXPECT_EQ(error.code, Code::kResourceExhausted);
  EXPECT_EQ(error.Advice(), "Release batches sooner, or lower batch_size");
  for (Slot* slot : held) pool_->Abandon(slot);
}

TEST_F(AssemblerTest, RestartDropsWhatNobodyTook) {
  Assembler assembler = Make(/*depth=*/4);
  CompleteAllRows(assembler);
  ASSERT_TRUE(assembler.Take({}).ok());
  // As many slots as there are: those of the dropped batches are taken again.
  assembler.Restart(/*depth=*/4, BatchSequence(Schedule::kEpochs, order_.batches_per_epoch(),
                                               {1, 2}, order_.batches_per_epoch(), 9));
  EXPECT_EQ(assembler.position(), (BatchName{1, 2}));
  EXPECT_EQ(CompleteAllRows(assembler), 2 + 4 + 4 + 2)
      << "four batches, the last of an epoch short";
  for (const BatchName name : {BatchName{1, 2}, {2, 0}, {2, 1}, {2, 2}}) {
    EXPECT_EQ(assembler.Take({}).value().name(), name);
  }
}

TEST_F(AssemblerTest, AnInterruptedTakeLosesNothing) {
  Assembler assembler = Make(/*depth=*/1);
  EXPECT_EQ(assembler.Take([] { return true; }).error().code, Code::kCancelled);
  (void)CompleteAllRows(assembler);
  EXPECT_EQ(assembler.Take({}).value().index(), 0u);
}

TEST_F(AssemblerTest, CancelWakesATakeThatWaits) {
  Assembler assembler = Make(/*depth=*/1);
  std::thread canceller([&] { assembler.Cancel(); });
  EXPECT_EQ(assembler.Take({}).error().code, Code::kCancelled);
  canceller.join();
  EXPECT_EQ(assembler.Take({}).error().code, Code::kCancelled) << "and stays so";
}

}  // namespace
}  // namespace stoker
