// The CUDA kernel matches ApplyDeferredOnHost to the bit. On a machine without a GPU it is skipped,
// and only the host's device runs, which shows that the test itself works.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/batch/deferred_ops.h"
#include "gpu/backend/device.h"
#include "tests/gpu/ops/random_job.h"
#include "tests/testing/effort.h"

namespace stoker {
namespace {

using testing::MadeJob;
using testing::Random;
using testing::ResultOf;

// Memory on a device.
class Room {
 public:
  Room(Device& device, size_t bytes)
      : device_(device), data_(static_cast<uint8_t*>(device.Allocate(bytes + 1).value())) {}
  ~Room() { device_.Free(data_); }
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;

  uint8_t* data() const { return data_; }

 private:
  Device& device_;
  uint8_t* data_;
};

class ApplyDeferredOnDevice : public ::testing::TestWithParam<DeviceName> {
 protected:
  void SetUp() override {
    Result<std::shared_ptr<Device>> opened = Device::Open(GetParam());
    if (!opened.ok()) {
      GTEST_SKIP() << GetParam().ToString() << " is not there, so that nothing is shown about it: "
                   << opened.error().ToString();
    }
    device_ = *std::move(opened);
    stream_ = device_->MakeStream().value();
  }
  void TearDown() override {
    if (device_ != nullptr) device_->Destroy(stream_);
  }

  // Copies a job whose memory is on the host to the device, with its addresses at the same distance
  // from a boundary of 16.
  void ApplyDeferred(const DeferredOpsJob& job) {
    const size_t values =
        static_cast<size_t>(job.rows) * static_cast<size_t>(job.height * job.width) * 3;
    const size_t work = static_cast<size_t>(job.rows) * DeferredOpsBytes(job.boxes);
    const Room from(*device_, values + 16), to(*device_, values * SizeOf(job.dtype));
    const Room left(*device_, work);
    DeferredOpsJob there = job;
    uint8_t* const first = from.data() + reinterpret_cast<uintptr_t>(job.from) % 16;
    there.from = first;
    there.to = to.data();
    Copy(first, job.from, values);
    if (job.work != nullptr) {
      there.work = left.data();
      Copy(left.data(), job.work, work);
    }
    const Status finished = device_->ApplyDeferred(there, stream_);
    ASSERT_TRUE(finished.ok()) << finished.error().ToString();
    Copy(job.to, to.data(), values * SizeOf(job.dtype));
  }

  void ExpectSame(const MadeJob& made, size_t shift) {
    const auto on_device = [&](const DeferredOpsJob& job) { ApplyDeferred(job); };
    const std::vector<uint8_t> wanted = ResultOf(made, ApplyDeferredOnHost, shift);
    const std::vector<uint8_t> got = ResultOf(made, on_device, shift);
    for (size_t i = 0; i < wanted.size(); ++i) {
      ASSERT_EQ(got[i], wanted[i]) << made.ToString() << ", byte " << i;
    }
  }

 private:
  // Copies and waits.
  void Copy(void* to, const void* from, size_t bytes) {
    const DeviceEvent done = device_->MakeEvent().value();
    Status status = device_->Copy(to, from, bytes, stream_);
    if (status.ok()) status = device_->Record(done, stream_);
    if (status.ok()) status = device_->Synchronize(done);
    device_->Destroy(done);
    ASSERT_TRUE(status.ok()) << status.error().ToString();
  }

  std::shared_ptr<Device> device_;
  DeviceStream stream_;
};

TEST_P(ApplyDeferredOnDevice, MatchesTheHostOnRandomJobs) {
  Random random(7);
  for (int n = 0; n < testing::Effort(1500); ++n) {
    SCOPED_TRACE(n);
    ExpectSame(testing::RandomJob(random), n % 4 == 0 ? 1 : 0);
    if (HasFatalFailure()) return;
  }
}

// A row takes many blocks, of which the last is not full. Aligned rows are handled in groups,
// shifted ones pixel by pixel.
TEST_P(ApplyDeferredOnDevice, MatchesTheHostOnLongRows) {
  Random random(8);
  for (int n = 0; n < testing::Effort(24); ++n) {
    SCOPED_TRACE(n);
    ExpectSame(testing::RandomJobOf(random, {.rows = 3, .height = 224, .width = 224}), n % 2);
    if (HasFatalFailure()) return;
  }
}

// There are more rows than a grid has blocks in its second dimension.
TEST_P(ApplyDeferredOnDevice, MatchesTheHostOnManyRows) {
  Random random(9);
  for (const int width : {1, 16}) {
    for (int n = 0; n < testing::Effort(5); ++n) {
      SCOPED_TRACE(n);
      ExpectSame(testing::RandomJobOf(random, {.rows = 66000, .height = 1, .width = width}), 0);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(ApplyDeferredOnDevice, EmptyBatchIsNoOp) {
  MadeJob made;
  made.job = {.height = 3, .width = 8, .dtype = DType::kF32};
  ExpectSame(made, 0);
}

INSTANTIATE_TEST_SUITE_P(Devices, ApplyDeferredOnDevice,
                         ::testing::Values(DeviceName{DeviceName::Kind::kHost, 0},
                                           DeviceName{DeviceName::Kind::kCuda, 0}),
                         [](const auto& device) {
                           const bool host = device.param.kind == DeviceName::Kind::kHost;
                           return std::string(host ? "Host" : "Cuda");
                         });

}  // namespace
}  // namespace stoker
