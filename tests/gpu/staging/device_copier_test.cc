// A copier delivers every batch whole and in order, on whichever stream and however late it is
// read.
#include "gpu/staging/device_copier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <thread>

#include "gpu/staging/device_ring.h"
#include "tests/gpu/staging/copier_setup.h"
#include "tests/testing/effort.h"
#include "tests/testing/random.h"

namespace stoker {
namespace {

using ::stoker::testing::CopierSetup;
using ::stoker::testing::CopierSetupOptions;
using ::stoker::testing::DeviceCall;
using ::stoker::testing::DevicesUnderTest;
using ::stoker::testing::DeviceUnderTest;
using ::stoker::testing::Effort;
using ::stoker::testing::ExpectRight;
using ::stoker::testing::Random;
using ::stoker::testing::ReadBatch;
using ::stoker::testing::StreamReader;

class DeviceCopierTest : public ::testing::TestWithParam<DeviceUnderTest> {};
INSTANTIATE_TEST_SUITE_P(, DeviceCopierTest, ::testing::ValuesIn(DevicesUnderTest()),
                         ::testing::PrintToStringParamName());

// Returns the next batch that is not an error; expects which one it is.
struct InOrder {
  CopierSetup& setup;
  uint64_t epoch = 0, index = 0;

  DeviceBatch Next() {
    DeviceBatch batch = setup.Next();
    if (!batch) {
      EXPECT_EQ(index, setup.source.batches_per_epoch());
      ++epoch;
      index = 0;
      batch = setup.Next();
    }
    EXPECT_EQ(batch.epoch(), epoch);
    EXPECT_EQ(batch.index(), index);
    EXPECT_EQ(batch.rows(), setup.source.RowsIn(index));
    ++index;
    return batch;
  }
};

TEST_P(DeviceCopierTest, AConsumerOnItsOwnStreamSeesWholeBatches) {
  CopierSetup setup(GetParam());
  StreamReader reader(setup.device);
  InOrder batches{setup};
  for (int i = 0; i < Effort(5000); ++i) {
    const DeviceBatch batch = batches.Next();
    ExpectRight(reader, batch, batches.epoch, batches.index - 1);
  }
}

TEST_P(DeviceCopierTest, ABatchDescribesItselfAsTheHostBatchDid) {
  CopierSetup setup(GetParam());
  for (uint64_t index = 0; index < setup.source.batches_per_epoch(); ++index) {
    const DeviceBatch batch = setup.Next();
    const int64_t rows = setup.source.RowsIn(index);
    ASSERT_EQ(batch.columns().size(), 2U);
    EXPECT_EQ(batch.images().name, "image");
    EXPECT_EQ(batch.images().dtype, DType::kU8);
    EXPECT_THAT(batch.images().shape, ::testing::ElementsAre(rows, 4, 8, 3));
    EXPECT_EQ(batch.labels().name, "label");
    EXPECT_THAT(batch.labels().shape, ::testing::ElementsAre(rows));
    ASSERT_EQ(batch.sample_ids().size(), static_cast<size_t>(rows));
    EXPECT_EQ(batch.sample_ids()[0], index * 16);
    EXPECT_EQ(batch.device(), setup.device);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(batch.images().data) % 256, 0U);
  }
}

TEST_P(DeviceCopierTest, ColumnsInOneSlabTakeOneCopy) {
  for (const bool one_slab : {true, false}) {
    CopierSetupOptions options;
    options.host.one_slab = one_slab;
    CopierSetup setup(GetParam(), options);
    StreamReader reader(setup.device);
    const auto batches = static_cast<int>(setup.source.batches_per_epoch());
    for (int i = 0; i < batches; ++i) ExpectRight(reader, setup.Next(), 0, i);
    setup.copier.reset();
    const int copies = setup.device->count(DeviceCall::kCopy);
    EXPECT_GE(copies, batches * (one_slab ? 1 : 2));
    EXPECT_LE(copies, (batches + 3) * (one_slab ? 1 : 2));  // and those copied ahead
  }
}

TEST_P(DeviceCopierTest, DeferredOpsFinishBeforeAColumnIsRead) {
  for (const bool has_work : {false, true}) {
    CopierSetupOptions options;
    options.has_deferred_ops = true;
    options.has_work = has_work;
    CopierSetup setup(GetParam(), options);
    StreamReader reader(setup.device);
    InOrder batches{setup};
    for (int i = 0; i < Effort(500); ++i) {
      const DeviceBatch batch = batches.Next();
      ASSERT_EQ(batch.columns().size(), 2U);
      ExpectRight(reader, batch, batches.epoch, batches.index - 1);
    }
    EXPECT_GE(setup.device->count(DeviceCall::kApplyDeferred), Effort(500));
  }
}

TEST_P(DeviceCopierTest, BatchesDroppedEarlyHarmNoOthers) {
  CopierSetup setup(GetParam());
  StreamReader reader(setup.device);
  InOrder batches{setup};
  Random random(1);
  ReadBatch unread;
  for (int i = 0; i < Effort(2000); ++i) {
    DeviceBatch batch = batches.Next();
    switch (random.Between(0, 3)) {
      case 0:  // at once
        break;
      case 1:  // having said that it would be used
        batch.WaitOn(reader.stream()).value();
        break;
      case 2:
        std::thread([dropped = std::move(batch)] {}).join();
        break;
      default:
        ExpectRight(reader, batch, batches.epoch, batches.index - 1);
    }
  }
}

TEST_P(DeviceCopierTest, AHeldBatchKeepsItsBytesWhileHundredsGoBy) {
  CopierSetup setup(GetParam());
  StreamReader reader(setup.device);
  InOrder batches{setup};
  const DeviceBatch held = batches.Next();
  const std::vector<uint64_t> ids(held.sample_ids().begin(), held.sample_ids().end());
  for (int i = 0; i < 300; ++i) {
    const DeviceBatch batch = batches.Next();
    ExpectRight(reader, batch, batches.epoch, batches.index - 1);
    EXPECT_NE(batch.images().data, held.images().data);
  }
  ExpectRight(reader, held, 0, 0);
  EXPECT_THAT(held.sample_ids(), ::testing::ElementsAreArray(ids));
}

TEST_P(DeviceCopierTest, HeldBatchesOutliveEverything) {
  auto setup = std::make_unique<CopierSetup>(GetParam());
  const std::shared_ptr<testing::HookedDevice> device = setup->device;
  {
    StreamReader reader(device);
    const DeviceBatch first = setup->Next();
    DeviceBatch second = setup->Next();
    const std::shared_ptr<const RingEntry> owner = second.Owner();
    const DeviceBatch same(std::const_pointer_cast<RingEntry>(owner));
    second.Release();
    setup.reset();
    ExpectRight(reader, first, 0, 0);
    ExpectRight(reader, same, 0, 1);
    EXPECT_GT(device->alive(), 0);
  }
  EXPECT_EQ(device->alive(), 0);
}

// The read is issued and the batch released long before the stream gets to the read.
TEST_P(DeviceCopierTest, WorkIssuedBeforeReleaseReadsThatBatch) {
  CopierSetup setup(GetParam());
  StreamReader reader(setup.device);
  InOrder batches{setup};
  std::deque<ReadBatch> reads;  // whose elements stay where they are
  for (int i = 0; i < Effort(1000); ++i) {
    DeviceBatch batch = batches.Next();
    batch.WaitOn(reader.stream()).value();
    reader.Work(i % 8);
    reader.Issue(batch, reads.emplace_back()).value();
  }
  reader.Await();
  for (const ReadBatch& read : reads) ExpectRight(read);
}

TEST_P(DeviceCopierTest, EachOfSeveralStreamsIsWaitedFor) {
  CopierSetup setup(GetParam());
  std::deque<StreamReader> readers;
  for (int i = 0; i < 3; ++i) readers.emplace_back(setup.device);
  InOrder batches{setup};
  Random random(2);
  std::deque<ReadBatch> reads;
  for (int i = 0; i < Effort(1000); ++i) {
    const DeviceBatch batch = batches.Next();
    for (StreamReader& reader : readers) {
      if (random.OneIn(2)) reader.Issue(batch, reads.emplace_back()).value();
    }
  }
  for (StreamReader& reader : readers) reader.Await();
  for (const ReadBatch& read : reads) ExpectRight(read);
}

TEST_P(DeviceCopierTest, ReusesEventsForNewStreams) {
  CopierSetup setup(GetParam());
  InOrder batches{setup};
  for (int i = 0; i < 50; ++i) {
    DeviceBatch batch = batches.Next();
    StreamReader reader(setup.device);
    ReadBatch read;
    reader.Issue(batch, read).value();
    batch.Release();
    reader.Await();
    ExpectRight(read);
  }
  // For each of three entries: copied, arrived, all_done, and one stream's; and the copier's.
  EXPECT_LE(setup.device->count(DeviceCall::kMakeEvent), 13);
}

TEST_P(DeviceCopierTest, MemoryIsFreedAfterTheWorkThatReadsIt) {
  for (int i = 0; i < Effort(50); ++i) {
    auto setup = std::make_unique<CopierSetup>(GetParam());
    const std::shared_ptr<testing::HookedDevice> device = setup->device;
    StreamReader reader(device);
    ReadBatch read;
    DeviceBatch batch = setup->Next();
    batch.WaitOn(reader.stream()).value();
    reader.Work(20);
    reader.Issue(batch, read).value();
    batch.Release();
    setup.reset();
    EXPECT_EQ(device->alive(), 0);
    reader.Await();
    ExpectRight(read);
  }
}

TEST_P(DeviceCopierTest, TheHostMayWaitAndRead) {
  CopierSetup setup(GetParam());
  InOrder batches{setup};
  for (int i = 0; i < Effort(500); ++i) {
    const DeviceBatch batch = batches.Next();
    batch.Wait().value();
    StreamReader reader(setup.device);  // waits for nothing by itself
    ReadBatch read;
    reader.Read(batch, read);
    reader.Await();
    ExpectRight(read);
  }
}

TEST_P(DeviceCopierTest, ReturnsHostBatches) {
  CopierSetup setup(GetParam());
  StreamReader reader(setup.device);
  InOrder batches{setup};
  for (int i = 0; i < Effort(500); ++i) {
    const DeviceBatch batch = batches.Next();
    ExpectRight(reader, batch, batches.epoch, batches.index - 1);
    EXPECT_LE(setup.source.lent(), 4);
  }
  DeviceBatch held = batches.Next();
  setup.copier.reset();
  setup.ring.reset();
  held.Release();
  EXPECT_EQ(setup.source.lent(), 0);
  EXPECT_LE(setup.source.max_lent(), 4);  // as many as the ring has entries, and one
}

}  // namespace
}  // namespace stoker
