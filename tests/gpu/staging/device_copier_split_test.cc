// A copier with several devices: each gets its rows of every batch, and what holds for one device
// holds for each.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "core/result/try.h"
#include "gpu/staging/device_ring.h"
#include "tests/gpu/staging/copier_setup.h"
#include "tests/testing/effort.h"

namespace stoker {
namespace {

using ::stoker::testing::BytesOf;
using ::stoker::testing::CopierSetupOptions;
using ::stoker::testing::DeviceCall;
using ::stoker::testing::DevicesUnderTest;
using ::stoker::testing::DeviceUnderTest;
using ::stoker::testing::Effort;
using ::stoker::testing::FakeCuda;
using ::stoker::testing::FakeHeld;
using ::stoker::testing::FakeHostBatches;
using ::stoker::testing::HookedDevice;
using ::stoker::testing::PlanOf;
using ::stoker::testing::ReadBatch;
using ::stoker::testing::StreamReader;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

using Devices = std::vector<std::shared_ptr<HookedDevice>>;

// Several views of one device, as a program sees it that names a device twice.
Devices Several(const DeviceUnderTest& under_test, size_t count,
                const HookedDevice::Hook& of_last = {}) {
  const std::shared_ptr<Device> inner = under_test.MakeDelayed();
  Devices devices;
  for (size_t i = 0; i < count; ++i) {
    devices.push_back(
        std::make_shared<HookedDevice>(inner, i + 1 == count ? of_last : HookedDevice::Hook()));
  }
  return devices;
}

CopyPlan PlanOfPart(const CopierSetupOptions& options, size_t parts) {
  CopyPlan plan = PlanOf(options);
  plan.batch_size /= static_cast<int64_t>(parts);
  return plan;
}

using Rings = std::vector<std::shared_ptr<DeviceRing>>;

Result<Rings> MakeRings(const Devices& devices, const CopierSetupOptions& options) {
  Rings rings;
  for (const auto& device : devices) {
    Result<std::shared_ptr<DeviceRing>> ring =
        DeviceCopier::MakeRing(device, PlanOfPart(options, devices.size()), options.buffers);
    if (!ring.ok()) return ring.error();
    rings.push_back(*std::move(ring));
  }
  return rings;
}

testing::HostBatchesOptions HostOf(const Devices& devices, CopierSetupOptions options) {
  options.host.pinned_for = devices[0]->inner();
  if (options.has_work) {
    options.host.zeros = options.host.columns.size();
    options.host.columns.push_back(PlanOf(options).host.back());
  }
  return options.host;
}

// Destroyed in this order: copier, rings, source, devices.
struct Split {
  explicit Split(Devices on, const CopierSetupOptions& options = {})
      : devices(std::move(on)),
        source(HostOf(devices, options)),
        rings(MakeRings(devices, options).value()),
        copier(std::make_unique<DeviceCopier>(
            rings, source, DeviceCopierOptions{.across_epochs = true, .patience = {}})) {}

  // The next batch that is not an epoch's end.
  SplitBatch Next() {
    SplitBatch batch = copier->NextParts().value();
    return batch ? std::move(batch) : copier->NextParts().value();
  }

  Devices devices;
  FakeHostBatches source;
  Rings rings;
  std::unique_ptr<DeviceCopier> copier;
};

// Reads the part on its device, and expects these rows of its batch; returns an error of the
// device.
Status ExpectRows(StreamReader& reader, const DeviceBatch& part, int64_t first, int64_t all_rows) {
  if (part.rows() == 0) return {};
  ReadBatch read;
  TRY(reader.Issue(part, read));
  reader.Await();
  for (size_t c = 0; c < read.columns.size(); ++c) {
    const size_t row_bytes = read.columns[c].size() / static_cast<size_t>(part.rows());
    const std::vector<uint8_t> whole =
        BytesOf(c, part.epoch(), part.index(), row_bytes * static_cast<size_t>(all_rows));
    const auto wanted = whole.begin() + first * static_cast<int64_t>(row_bytes);
    EXPECT_TRUE(std::equal(read.columns[c].begin(), read.columns[c].end(), wanted))
        << "column " << c << " from row " << first << " of batch " << part.index();
  }
  return {};
}

class DeviceCopierSplitTest : public ::testing::TestWithParam<DeviceUnderTest> {};
INSTANTIATE_TEST_SUITE_P(, DeviceCopierSplitTest, ::testing::ValuesIn(DevicesUnderTest()),
                         ::testing::PrintToStringParamName());

void ExpectAllRows(Split& split, std::vector<std::unique_ptr<StreamReader>>& readers, int batches) {
  for (int i = 0; i < batches; ++i) {
    const SplitBatch batch = split.Next();
    ASSERT_EQ(batch.parts.size(), split.devices.size());
    const auto per_epoch = static_cast<int>(split.source.batches_per_epoch());
    EXPECT_EQ(batch.name(), (BatchName{static_cast<uint64_t>(i / per_epoch),
                                       static_cast<uint64_t>(i % per_epoch)}));
    EXPECT_EQ(batch.rows(), split.source.RowsIn(batch.name().index));
    int64_t first = 0, most = batch.parts[0].rows();
    for (size_t p = 0; p < batch.parts.size(); ++p) {
      const DeviceBatch& part = batch.parts[p];
      EXPECT_EQ(part.device(), split.devices[p]);
      EXPECT_EQ(part.name(), batch.name());
      EXPECT_LE(part.rows(), most);
      EXPECT_GE(part.rows(), batch.parts[0].rows() - 1);
      most = part.rows();
      ASSERT_EQ(part.sample_ids().size(), static_cast<size_t>(part.rows()));
      if (part.rows() > 0) {
        EXPECT_EQ(part.sample_ids()[0], batch.name().index * 16 + static_cast<uint64_t>(first));
      }
      EXPECT_TRUE(ExpectRows(*readers[p], part, first, batch.rows()).ok());
      first += part.rows();
    }
    EXPECT_EQ(first, batch.rows());
  }
}

TEST_P(DeviceCopierSplitTest, EachDeviceGetsItsRowsOfEveryBatch) {
  for (const size_t count : {1, 2, 4}) {  // the last batch of an epoch has 3 rows
    for (const bool has_deferred_ops : {false, true}) {
      for (const bool one_slab : {true, false}) {
        CopierSetupOptions options;
        options.has_deferred_ops = options.has_work = has_deferred_ops;
        options.host.one_slab = one_slab;
        Split split(Several(GetParam(), count), options);
        std::vector<std::unique_ptr<StreamReader>> readers;
        for (const auto& device : split.devices) {
          readers.push_back(std::make_unique<StreamReader>(device));
        }
        ExpectAllRows(split, readers, Effort(60));
        EXPECT_LE(split.source.max_lent(), options.buffers + 1);
      }
    }
  }
}

TEST_P(DeviceCopierSplitTest, OfTheRowBeforeOnlyWhatTheJobReadsIsCopied) {
  CopierSetupOptions options;
  options.has_deferred_ops = options.has_work = true;
  const Devices devices = Several(GetParam(), 2);
  FakeHostBatches source(HostOf(devices, options));
  CopyPlan plan = PlanOfPart(options, devices.size());
  plan.has_row_before = plan.job.mixes = true;
  Rings rings;
  for (const auto& device : devices) {
    rings.push_back(DeviceCopier::MakeRing(device, plan, options.buffers).value());
  }
  DeviceCopier copier(std::move(rings), source, {.across_epochs = true, .patience = {}});
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(copier.NextParts().value());
  copier.Stop();
  std::vector<ptrdiff_t> rows;  // copies of one row of each column; the parts have two rows or more
  for (const ColumnSpec& column : plan.host) {
    rows.push_back(
        std::ranges::count(devices[0]->copies(), column.row_bytes(), &HookedDevice::Copied::bytes));
  }
  EXPECT_GE(rows[0], 3);
  EXPECT_EQ(rows[1], 0) << "labels";
  EXPECT_GE(rows[2], 3);
}

// The fake reports what is used on another device than it was made for.
TEST(DeviceCopierOnTwoFakeDevicesTest, EachUsesItsOwnDevice) {
  FakeCuda cuda({.devices = 2});
  {
    Devices devices;
    for (const int ordinal : {0, 1}) {
      devices.push_back(std::make_shared<HookedDevice>(testing::OpenFakeDevice(ordinal).value()));
    }
    CopierSetupOptions options;
    options.has_deferred_ops = options.has_work = true;
    Split split(devices, options);
    std::vector<std::unique_ptr<StreamReader>> readers;
    for (const auto& device : devices) readers.push_back(std::make_unique<StreamReader>(device));
    ExpectAllRows(split, readers, 20);
    EXPECT_GE(split.copier->Stats().batches, 20U);
    EXPECT_TRUE(cuda.HasContext(0) && cuda.HasContext(1));
  }
  EXPECT_EQ(cuda.Held(), FakeHeld());
  EXPECT_THAT(cuda.Violations(), ::testing::IsEmpty());
}

TEST_P(DeviceCopierSplitTest, AllBuffersOfOneDeviceHeldIsAnErrorThatSkipsNothing) {
  Split split(Several(GetParam(), 2));
  std::vector<DeviceBatch> held;
  for (int i = 0; i < 3; ++i) held.push_back(std::move(split.Next().parts[1]));
  const Result<SplitBatch> none = split.copier->NextParts();
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, Code::kResourceExhausted);
  EXPECT_THAT(none.error().cause, HasSubstr("3 batches on"));
  held.erase(held.begin());
  EXPECT_EQ(split.Next().name().index, 3U);
}

TEST_P(DeviceCopierSplitTest, APartOutlivesTheOthersAndEverything) {
  auto split = std::make_unique<Split>(Several(GetParam(), 2));
  const Devices devices = split->devices;
  {
    StreamReader reader(devices[1]);
    const DeviceBatch part = std::move(split->Next().parts[1]);
    split.reset();
    EXPECT_EQ(devices[0]->alive(), 0);
    EXPECT_TRUE(ExpectRows(reader, part, 8, 16).ok());
  }
  EXPECT_EQ(devices[1]->alive(), 0);
}

// Takes batches until there is an error, which it returns, or `most`; reads all parts.
std::optional<Error> Consume(DeviceCopier& copier,
                             std::vector<std::unique_ptr<StreamReader>>& readers, int most) {
  for (int i = 0; i < most; ++i) {
    const Result<SplitBatch> batch = copier.NextParts();
    if (!batch.ok()) return batch.error();
    int64_t first = 0;
    for (size_t p = 0; p < batch->parts.size(); ++p) {
      (void)ExpectRows(*readers[p], batch->parts[p], first, batch->rows());  // may fail, too
      first += batch->parts[p].rows();
    }
  }
  return std::nullopt;
}

// The second device fails at each of its calls in turn.
TEST_P(DeviceCopierSplitTest, AFailureOfOneDeviceEndsAll) {
  std::atomic<bool> fault = true;
  int at = 0;
  while (fault) {
    ++at;
    fault = false;
    std::atomic<int> calls = 0;
    const auto hook = [&](DeviceCall) -> Status {
      if (++calls != at) return {};
      fault = true;
      return Error{Code::kUnavailable, "injected"};
    };
    CopierSetupOptions options;
    options.has_deferred_ops = true;
    const Devices devices = Several(GetParam(), 2, hook);
    FakeHostBatches source(HostOf(devices, options));
    {
      std::vector<std::unique_ptr<StreamReader>> readers;
      for (const auto& device : devices) readers.push_back(std::make_unique<StreamReader>(device));
      Result<Rings> rings = MakeRings(devices, options);
      if (rings.ok()) {
        DeviceCopier copier(*std::move(rings), source, {.across_epochs = true, .patience = {}});
        const std::optional<Error> error = Consume(copier, readers, 8);
        if (error) {
          EXPECT_THAT(error->cause, HasSubstr("injected"));
          EXPECT_FALSE(copier.NextParts().ok()) << "it is over once it is";
        }
      }
    }
    EXPECT_EQ(source.lent(), 0) << at;
    for (const auto& device : devices) EXPECT_EQ(device->alive(), 0) << at;
  }
  EXPECT_GT(at, 50);  // it has been through all of a run
}

// It waits for the second device's ring, and has an entry of the first one's, which the next copier
// finds.
TEST_P(DeviceCopierSplitTest, StopEndsAWaitForOneOfTheRings) {
  Split split(Several(GetParam(), 2));
  std::vector<DeviceBatch> held;
  for (int i = 0; i < 3; ++i) held.push_back(std::move(split.Next().parts[1]));
  split.copier->Stop();
  split.copier.reset();
  held.clear();
  FakeHostBatches again(HostOf(split.devices, {}));
  DeviceCopier next(split.rings, again, {.across_epochs = true, .patience = {}});
  std::vector<SplitBatch> all;
  for (int i = 0; i < 3; ++i) all.push_back(next.NextParts().value());
  EXPECT_EQ(all.back().name().index, 2U);
  EXPECT_EQ(next.NextParts().error().code, Code::kResourceExhausted);
}

TEST_P(DeviceCopierSplitTest, RefusesABatchWithMoreRows) {
  CopierSetupOptions options;
  Split split(Several(GetParam(), 2), options);
  options.host.batch_size = 18;
  FakeHostBatches larger(HostOf(split.devices, options));
  DeviceCopier copier(split.rings, larger, {.patience = {}});
  const Result<SplitBatch> none = copier.NextParts();
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(none.error().cause, HasSubstr("at most 2 columns and 16 rows"));
}

}  // namespace
}  // namespace stoker
