// device_bench measures what it says: the kernels are checked, and bytes are counted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

#include "bench/device/crop_kernels.h"
#include "bench/device/finish_kernel.h"
#include "bench/device/json.h"
#include "bench/device/recording.h"
#include "bench/device/staged_copies.h"
#include "core/batch/device_crop.h"
#include "tests/engine/device/device_decoding.h"
#include "tests/testing/devices/hooked_device.h"

namespace stoker {
namespace {

using ::stoker::testing::DeviceCall;
using ::stoker::testing::HookedDevice;
using ::stoker::testing::kPhotos;
using ::stoker::testing::RandomJpeg;
using ::stoker::testing::Text;
using ::testing::HasSubstr;

constexpr uint32_t kBatch = 8;  // four of them are more than there are photographs

class CropKernelsTest : public testing::DeviceDecodeTest {};
INSTANTIATE_TEST_SUITE_P(, CropKernelsTest, ::testing::ValuesIn(testing::DevicesUnderTest()),
                         ::testing::PrintToStringParamName());

TEST_P(CropKernelsTest, OfPackedPhotographs) {
  const CropKernels kernels = MeasureCropKernels(device_, photos_.Source(), kBatch, 2).value();
  EXPECT_EQ(kernels.crops, kBatch);
  EXPECT_GT(kernels.crop_bytes, kBatch * sizeof(decode::DeviceCrop));
  EXPECT_GT(kernels.host_ns, 0);
  EXPECT_TRUE(kernels.unpack && kernels.resample);
  EXPECT_FALSE(kernels.entropy);
  EXPECT_GE(kernels.all.median_ns, kernels.all.least_ns);
}

TEST_P(CropKernelsTest, OfPhotographsWithAnIndex) {
  for (uint64_t id = 0; id < kPhotos; ++id) photos_.Overwrite(id, Text(RandomJpeg(random_)));
  const CropKernels kernels = MeasureCropKernels(device_, With(Indexes()), kBatch, 2).value();
  EXPECT_EQ(kernels.crops, kBatch);
  EXPECT_FALSE(kernels.unpack);
  EXPECT_TRUE(kernels.entropy && kernels.resample);
}

TEST_P(CropKernelsTest, RefusesPhotographsThatTheDeviceDoesNotDecode) {
  for (uint64_t id = 0; id < kPhotos; ++id) photos_.Overwrite(id, Text(RandomJpeg(random_)));
  const auto kernels = MeasureCropKernels(device_, photos_.Source(), kBatch, 2);
  ASSERT_FALSE(kernels.ok());
  EXPECT_EQ(kernels.error().code, Code::kInvalidArgument);
}

// Profilers skip these batches' kernels: the next ones are launched each by itself.
TEST_P(CropKernelsTest, StagesFourBatchesFirst) {
  const std::thread::id here = std::this_thread::get_id();
  std::atomic<int> staged = 0;
  int before = -1;
  const auto device = std::make_shared<HookedDevice>(device_, [&](DeviceCall call) -> Status {
    if (call != DeviceCall::kDecodeCrops) return {};
    if (std::this_thread::get_id() != here) {
      ++staged;
    } else if (before < 0) {
      before = staged;
    }
    return {};
  });
  MeasureCropKernels(device, photos_.Source(), kBatch, 2).value();
  EXPECT_EQ(before, 4);
}

// A kernel that writes nothing to one of the rows would look fast.
TEST_P(CropKernelsTest, RefusesWrongPixels) {
  for (const int wrong : {1, 2, 4}) {  // the check before the measurement, or one of those after it
    const std::thread::id here = std::this_thread::get_id();
    const std::vector<uint8_t> others(224 * 224 * 3, 0x5a);
    HookedDevice* hooked = nullptr;
    int checks = 0;
    const auto device = std::make_shared<HookedDevice>(device_, [&](DeviceCall call) -> Status {
      if (call != DeviceCall::kApplyDeferred || std::this_thread::get_id() != here) return {};
      const HookedDevice::Copied last = hooked->copies().back();
      // The check has just removed the pixels of a row.
      if (last.bytes != others.size() || ++checks != wrong) return {};
      return device_->Copy(const_cast<void*>(last.to), others.data(), others.size(), last.stream);
    });
    hooked = device.get();
    const auto kernels = MeasureCropKernels(device, photos_.Source(), kBatch, 2);
    ASSERT_FALSE(kernels.ok()) << wrong;
    EXPECT_EQ(kernels.error().cause, "the device's pixels are not those of the CPU");
  }
}

// Each value depends on each byte that it was made from.
uint64_t Dependences(DeferredOpsJob job, const FinishingOps& ops) {
  job = WithOps(job, ops);
  const std::vector<uint64_t> work = FinishingWork(job, ops);
  if (!work.empty()) job.work = reinterpret_cast<const uint8_t*>(work.data());
  const size_t values = static_cast<size_t>(job.rows) * 3 * static_cast<size_t>(job.height) *
                        static_cast<size_t>(job.width);
  std::vector<uint8_t> from(values, 100);
  std::vector<float> before(values), after(values);
  job.from = from.data();
  job.to = before.data();
  ApplyDeferredPlain(job);
  job.to = after.data();
  uint64_t dependences = 0;
  for (uint8_t& byte : from) {
    byte = 200;
    ApplyDeferredPlain(job);
    byte = 100;
    for (size_t i = 0; i < values; ++i) dependences += before[i] != after[i] ? 1 : 0;
  }
  return dependences;
}

TEST(FinishKernel, CountsEveryByteThatIsRead) {
  DeferredOpsJob job{.rows = 3, .height = 7, .width = 14, .dtype = DType::kF32};
  std::fill_n(job.scale, 3, 1.0F / 255);
  for (const FinishingOps& ops : kFinishingOps) {
    EXPECT_EQ(FinishingBytes(WithOps(job, ops), ops), Dependences(job, ops)) << ops.name;
  }
}

TEST(FinishKernel, IsMeasuredInTheSameMemory) {
  HookedDevice device(Device::Open({DeviceName::Kind::kHost, 0}).value());
  DeferredOpsJob job{.rows = 2, .height = 14, .width = 14};
  const auto kernel = FinishKernel::Make(device, job).value();
  for (const DType dtype : {DType::kF16, DType::kF32}) {
    job.dtype = dtype;
    for (const FinishingOps& ops : kFinishingOps) {
      const FinishRates rates = kernel->Measure(job, ops).value();
      EXPECT_GT(rates.kernel, 0) << ops.name;
      EXPECT_GT(rates.copy, 0) << ops.name;
    }
  }
  EXPECT_EQ(device.count(DeviceCall::kPin), 1);
  job.rows = 3;
  EXPECT_FALSE(kernel->Measure(job, kFinishingOps[0]).ok());
}

TEST(Recording, CountsCallsWhileTheDeviceIsIdleOrBusy) {
  const auto device = Device::Open({DeviceName::Kind::kHost, 0}).value();
  const RecordTimes idle = MeasureRecords(*device, /*busy=*/false, 20).value();
  EXPECT_EQ(idle.record.calls, 20);
  EXPECT_EQ(idle.record_all.calls, 20);
  EXPECT_GE(idle.record.most_us, idle.record.median_us);
  const RecordTimes busy = MeasureRecords(*device, /*busy=*/true, 20).value();
  EXPECT_GE(busy.record_all.calls, 1);
}

TEST(StagedCopies, HaveRatesAndSayWhetherTheirMemoryIsPinned) {
  for (const bool refuses : {false, true}) {
    std::atomic<int> left = refuses ? 6 : 0;  // to map and to allocate, for each of three loaders
    const auto device = std::make_shared<HookedDevice>(
        Device::Open({DeviceName::Kind::kHost, 0}).value(), [&left](DeviceCall call) -> Status {
          if (call != DeviceCall::kPin || left.load() == 0) return {};
          --left;
          return Error{Code::kUnavailable, "not here"};
        });
    const CopyRates rates = MeasureCopies(device, 1, /*rounds=*/1, /*batches=*/2).value();
    for (const double rate :
         {rates.pageable, rates.registered, rates.registered_huge, rates.host_alloc, rates.batches,
          rates.batches_32mib, rates.batches_whole}) {
      EXPECT_GT(rate, 0);
    }
    EXPECT_EQ(rates.pinned_bytes == 0, refuses);
    EXPECT_GT(rates.pinning_s, 0);
    EXPECT_EQ(rates.memory_warning.has_value(), refuses);
    EXPECT_THAT(rates.memory_warning.value_or("could not be pinned"),
                HasSubstr("could not be pinned"));
  }
}

TEST(StagedCopies, AreMeasuredBehindSteps) {
  const auto device = Device::Open({DeviceName::Kind::kHost, 0}).value();
  const CopiesBehindSteps copies = MeasureBehindSteps(device, 1, 5).value();
  EXPECT_GT(copies.step_ms, 0);
  EXPECT_GT(copies.copy_ms, 0);
  EXPECT_LE(copies.hidden_at_least, 1);
}

TEST(Json, HasNoNumbersThatAreNotFinite) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(JsonNumber(12.346, 2), "12.35");
  EXPECT_EQ(JsonNumber(-12, 0), "-12");
  for (const double value : {kInfinity, -kInfinity, kInfinity - kInfinity}) {
    EXPECT_EQ(JsonNumber(value, 1), "null");
  }
}

}  // namespace
}  // namespace stoker
