#include "tests/gpu/staging/copier_setup.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "core/batch/deferred_ops.h"

namespace stoker::testing {

namespace {

constexpr size_t kScratchBytes = 1 << 10;
constexpr size_t kPage = 4096;

size_t RoundUp(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

HostBatchesOptions HostOf(const CopierSetupOptions& options,
                          const std::shared_ptr<HookedDevice>& device = {}) {
  HostBatchesOptions host = options.host;
  if (device != nullptr) host.pinned_for = device->inner();
  if (options.has_work) {
    host.zeros = host.columns.size();
    host.columns.push_back({"work", DType::kU8, {DeferredOpsBytes(0)}});
  }
  return host;
}

}  // namespace

CopyPlan PlanOf(const CopierSetupOptions& options) {
  CopyPlan plan;
  plan.host = HostOf(options).columns;
  plan.device = options.host.columns;
  plan.batch_size = options.host.batch_size;
  plan.has_deferred_ops = options.has_deferred_ops;
  plan.has_work = options.has_work;
  plan.piece_bytes = options.piece_bytes;
  plan.job.height = static_cast<int32_t>(plan.host[0].row_shape[0]);
  plan.job.width = static_cast<int32_t>(plan.host[0].row_shape[1]);
  return plan;
}

CopierSetup::CopierSetup(const DeviceUnderTest& under_test, CopierSetupOptions options)
    : CopierSetup(std::make_shared<HookedDevice>(under_test.MakeDelayed(), options.hook), options) {
}

CopierSetup::CopierSetup(std::shared_ptr<HookedDevice> on, CopierSetupOptions options)
    : device(std::move(on)),
      source(HostOf(options, device)),
      ring(DeviceCopier::MakeRing(device, PlanOf(options), options.buffers, options.timed).value()),
      copier(std::make_unique<DeviceCopier>(
          ring, source,
          DeviceCopierOptions{.across_epochs = options.across_epochs, .patience = {}})) {}

StreamReader::StreamReader(const std::shared_ptr<HookedDevice>& device)
    : kept_(device),
      device_(*device->inner()),
      stream_(device_.MakeStream().value()),
      event_(device_.MakeEvent().value()),
      scratch_(static_cast<uint8_t*>(device_.Allocate(kScratchBytes).value())),
      scratch_source_(device->inner(), kPage) {}

StreamReader::~StreamReader() {
  Await();
  device_.Destroy(stream_);
  device_.Destroy(event_);
  device_.Free(scratch_);
}

void StreamReader::Work(int pieces) {
  for (int i = 0; i < pieces; ++i) {
    device_.Copy(scratch_, scratch_source_.data(), kScratchBytes, stream_).value();
  }
}

Status StreamReader::Issue(const DeviceBatch& batch, ReadBatch& to) {
  if (Status s = batch.WaitOn(stream_); !s.ok()) return s;
  Read(batch, to);
  return {};
}

void StreamReader::Read(const DeviceBatch& batch, ReadBatch& to) {
  to.epoch = batch.epoch();
  to.index = batch.index();
  size_t bytes = 0;
  for (const Column& column : batch.columns()) bytes += RoundUp(column.bytes());
  to.memory = std::make_unique<PinnedBytes>(kept_->inner(), bytes);
  to.columns.clear();
  uint8_t* next = to.memory->data();
  for (const Column& column : batch.columns()) {
    device_.Copy(next, column.data, column.bytes(), stream_).value();
    to.columns.emplace_back(next, column.bytes());
    next += RoundUp(column.bytes());
  }
}

void StreamReader::Await() {
  device_.Record(event_, stream_).value();
  device_.Synchronize(event_).value();
}

void ExpectRight(const ReadBatch& batch) {
  for (size_t c = 0; c < batch.columns.size(); ++c) {
    const std::span<const uint8_t> read = batch.columns[c];
    const std::vector<uint8_t> wanted = BytesOf(c, batch.epoch, batch.index, read.size());
    const bool right = std::equal(read.begin(), read.end(), wanted.begin(), wanted.end());
    EXPECT_TRUE(right) << "column " << c << " of batch " << batch.index << " of epoch "
                       << batch.epoch;
  }
}

void ExpectRight(StreamReader& reader, const DeviceBatch& batch, uint64_t epoch, uint64_t index) {
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch.epoch(), epoch);
  EXPECT_EQ(batch.index(), index);
  ReadBatch read;
  reader.Issue(batch, read).value();
  reader.Await();
  ExpectRight(read);
}

}  // namespace stoker::testing
