// The device fails at each of its calls in turn, once or from then on. Nothing hangs or leaks,
// every host batch is returned, and every batch that is delivered without an error is right.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gpu/staging/device_ring.h"
#include "tests/gpu/staging/copier_setup.h"
#include "tests/testing/effort.h"

namespace stoker {
namespace {

using ::stoker::testing::CopierSetupOptions;
using ::stoker::testing::DeviceCall;
using ::stoker::testing::DevicesUnderTest;
using ::stoker::testing::DeviceUnderTest;
using ::stoker::testing::ExpectRight;
using ::stoker::testing::FakeHostBatches;
using ::stoker::testing::HookedDevice;
using ::stoker::testing::PlanOf;
using ::stoker::testing::ReadBatch;
using ::stoker::testing::StreamReader;
using ::testing::HasSubstr;

enum class Failing : uint8_t { kOnce, kFromThenOn };

struct Fault {
  Failing failing = Failing::kOnce;
  int at = 1;                        // the first call that fails, from 1
  std::optional<DeviceCall> only{};  // count calls of this kind
};

// A device with a fault. A device that is lost for good has ended its work before it reports the
// loss.
struct FaultyDevice {
  FaultyDevice(const DeviceUnderTest& under_test, Fault fault, Code code = Code::kUnavailable)
      : code(code),
        inner(under_test.MakeDelayed()),
        device(std::make_shared<HookedDevice>(
            inner, [this, fault](DeviceCall call) { return Before(fault, call); })) {}

  Status Before(const Fault& fault, DeviceCall call) {
    if (fault.only && *fault.only != call) return {};
    const int now = ++calls;
    const bool fails = fault.failing == Failing::kOnce ? now == fault.at : now >= fault.at;
    if (!fails) return {};
    failed = true;
    if (fault.failing == Failing::kFromThenOn) (void)inner->SynchronizeAll();
    return Error{code, "injected"};
  }

  const Code code;
  std::atomic<int> calls{0};
  std::atomic<bool> failed{false};
  const std::shared_ptr<Device> inner;
  const std::shared_ptr<HookedDevice> device;
};

// Takes batches until there is an error, and three more times; reads what it gets. The consumer's
// own errors count too.
std::vector<Error> Consume(DeviceCopier& copier, StreamReader& reader, int batches) {
  std::vector<Error> errors;
  for (int i = 0; errors.empty() ? i < batches : errors.size() < 3; ++i) {
    Result<DeviceBatch> batch = copier.Next();
    if (!batch.ok()) {
      errors.push_back(batch.error());
      continue;
    }
    if (!*batch) continue;
    ReadBatch read;
    // Uses the batch in both ways, or in neither.
    if (i % 4 == 1) {
      batch->MarkUntracked();
    } else if (i % 4 == 2) {
      batch->Release();
      continue;
    }
    if (Status s = reader.Issue(*batch, read); !s.ok()) {
      EXPECT_THAT(s.error().cause, HasSubstr("injected"));
      continue;
    }
    if (i % 2 == 0) batch->Release();
    reader.Await();
    ExpectRight(read);
  }
  return errors;
}

class DeviceCopierFaultTest : public ::testing::TestWithParam<DeviceUnderTest> {
 protected:
  // Returns whether the fault occurred.
  bool Run(Fault fault, bool has_deferred_ops) {
    SCOPED_TRACE("call " + std::to_string(fault.at));
    CopierSetupOptions options;
    options.has_deferred_ops = has_deferred_ops;
    FaultyDevice faulty(GetParam(), fault);
    StreamReader reader(faulty.device);
    options.host.pinned_for = faulty.inner;
    FakeHostBatches source(options.host);
    {
      Result<std::shared_ptr<DeviceRing>> ring =
          DeviceCopier::MakeRing(faulty.device, PlanOf(options), options.buffers);
      if (!ring.ok()) {
        EXPECT_THAT(ring.error().cause, HasSubstr("injected"));
        EXPECT_EQ(faulty.device->alive(), 0);
        return true;
      }
      DeviceCopier copier(*std::move(ring), source, {.across_epochs = true, .patience = {}});
      const std::vector<Error> errors = Consume(copier, reader, 16);
      for (const Error& error : errors) {
        EXPECT_EQ(error.code, Code::kUnavailable);
        EXPECT_THAT(error.cause, HasSubstr("injected"));
      }
      // It is over once it is.
      EXPECT_TRUE(errors.empty() || errors.size() == 3);
    }
    EXPECT_EQ(source.lent(), 0);
    EXPECT_EQ(faulty.device->alive(), 0);
    return faulty.failed;
  }
};
INSTANTIATE_TEST_SUITE_P(, DeviceCopierFaultTest, ::testing::ValuesIn(DevicesUnderTest()),
                         ::testing::PrintToStringParamName());

TEST_P(DeviceCopierFaultTest, SurvivesAFailureAtEveryCall) {
  for (const Failing failing : {Failing::kOnce, Failing::kFromThenOn}) {
    for (const bool has_deferred_ops : {false, true}) {
      int at = 1;
      while (Run({failing, at}, has_deferred_ops)) ++at;
      EXPECT_GT(at, 50);  // it has been through all of a run
    }
  }
}

// How often some calls are made depends on the threads, so each kind of call also fails by itself.
TEST_P(DeviceCopierFaultTest, SurvivesAFailureAtEveryCallOfEachKind) {
  for (const DeviceCall call :
       {DeviceCall::kAllocate, DeviceCall::kMakeStream, DeviceCall::kMakeEvent, DeviceCall::kRecord,
        DeviceCall::kWait, DeviceCall::kDone, DeviceCall::kRecordAll, DeviceCall::kCopy,
        DeviceCall::kApplyDeferred}) {
    int at = 1;
    while (Run({Failing::kOnce, at, call}, true)) ++at;
    EXPECT_GT(at, 1) << "a call that was never made: " << static_cast<int>(call);
  }
}

// Only the copier's own streams are waited for: another thread may capture a graph.
TEST_P(DeviceCopierFaultTest, AFailedCopyInvalidatesNoCapture) {
  for (const bool has_deferred_ops : {false, true}) {
    CopierSetupOptions options;
    options.has_deferred_ops = has_deferred_ops;
    FaultyDevice faulty(GetParam(), {.at = 5, .only = DeviceCall::kCopy});
    StreamReader reader(faulty.device);
    testing::CopierSetup setup(faulty.device, options);
    EXPECT_EQ(Consume(*setup.copier, reader, 16).size(), 3U);
    EXPECT_EQ(setup.source.lent(), 0);
    EXPECT_EQ(faulty.device->count(DeviceCall::kSynchronizeAll), 0);
  }
}

// The consumer's stream no longer exists and cannot be waited for, so the copier waits for all work
// of the device.
TEST_P(DeviceCopierFaultTest, AConsumersFailedRecordIsNotADeviceError) {
  // The releasing thread is the consumer's, on which records fail.
  const std::thread::id consumer = std::this_thread::get_id();
  CopierSetupOptions options;
  options.hook = [consumer](DeviceCall call) -> Status {
    if (call != DeviceCall::kRecord || std::this_thread::get_id() != consumer) return {};
    return Error{Code::kUnavailable, "no such stream"};
  };
  testing::CopierSetup setup(GetParam(), options);
  StreamReader reader(setup.device);
  for (int epoch = 0; epoch < testing::Effort(20); ++epoch) {
    std::vector<ReadBatch> reads(6);
    for (ReadBatch& read : reads) {
      DeviceBatch batch = setup.Next();
      reader.Work(5);
      reader.Issue(batch, read).value();
    }
    reader.Await();
    for (const ReadBatch& read : reads) ExpectRight(read);
    EXPECT_FALSE(setup.Next());
  }
  EXPECT_GT(setup.device->count(DeviceCall::kRecordAll), 0);
}

TEST_P(DeviceCopierFaultTest, OutOfMemoryErrorCountsBatches) {
  const auto device =
      std::make_shared<HookedDevice>(GetParam().MakeDelayed(), [](DeviceCall call) -> Status {
        if (call != DeviceCall::kAllocate) return {};
        return Error{.code = Code::kResourceExhausted, .cause = "no memory", .advice = "Wait"};
      });
  const auto ring = DeviceCopier::MakeRing(device, PlanOf({}), 5);
  ASSERT_FALSE(ring.ok());
  EXPECT_EQ(ring.error().code, Code::kResourceExhausted);
  EXPECT_THAT(ring.error().cause, HasSubstr("5 batches of 8192 bytes"));
  EXPECT_THAT(ring.error().cause, HasSubstr("no memory"));
  EXPECT_EQ(ring.error().Advice(), "Wait, or lower buffers or batch_size");
  EXPECT_EQ(device->alive(), 0);
}

TEST_P(DeviceCopierFaultTest, OutOfMemoryErrorOfCropsNamesTheirSamples) {
  CopierSetupOptions options;
  options.has_deferred_ops = options.has_work = true;
  CopyPlan plan = PlanOf(options);
  plan.crops = {.bytes = 4096, .samples = 512};
  plan.host.insert(plan.host.end() - 1, {"crop", DType::kU64, {}});
  for (const int failing : {1, 2}) {  // the samples come first
    FaultyDevice faulty(GetParam(), {.at = failing, .only = DeviceCall::kAllocate},
                        Code::kResourceExhausted);
    const auto ring = DeviceCopier::MakeRing(faulty.device, plan, 5);
    ASSERT_FALSE(ring.ok());
    EXPECT_EQ(ring.error().code, Code::kResourceExhausted);
    EXPECT_THAT(ring.error().cause,
                HasSubstr(failing == 1 ? "the samples of a batch's crops, 16384 bytes, do not fit"
                                       : "5 batches of"));
    EXPECT_THAT(ring.error().cause, HasSubstr("injected"));
    EXPECT_EQ(ring.error().Advice(),
              failing == 1 ? "Let the workers decode (to_device(…, decode=\"workers\")), or lower "
                             "batch_size or crop_bytes"
                           : "Lower buffers, batch_size or crop_bytes");
    EXPECT_EQ(faulty.device->alive(), 0);
  }
}

TEST_P(DeviceCopierFaultTest, RefusesInconsistentPlans) {
  CopierSetupOptions options;
  options.has_deferred_ops = true;
  options.has_work = true;
  const CopyPlan right = PlanOf(options);
  const auto code = [&](const CopyPlan& plan, int buffers) {
    const auto ring = DeviceCopier::MakeRing(GetParam().MakeDelayed(), plan, buffers);
    return ring.ok() ? std::nullopt : std::optional(ring.error().code);
  };
  EXPECT_EQ(code(right, 2), std::nullopt);
  EXPECT_EQ(code(right, 64), std::nullopt);
  std::vector<std::pair<CopyPlan, int>> wrong = {{right, 1}, {right, 65}, {right, -1}};
  const auto add = [&](auto change) {
    wrong.emplace_back(right, 3);
    change(wrong.back().first);
  };
  add([](CopyPlan& plan) { plan.batch_size = 0; });
  add([](CopyPlan& plan) { plan.piece_bytes = 0; });
  add([](CopyPlan& plan) { plan.host.clear(); });
  add([](CopyPlan& plan) { plan.device.clear(); });
  add([](CopyPlan& plan) { plan.device = plan.host; });  // the work would be delivered
  add([](CopyPlan& plan) { plan.device[1].dtype = DType::kF32; });
  add([](CopyPlan& plan) { plan.device[0].dtype = DType::kF32; });
  add([](CopyPlan& plan) { plan.device[0].row_shape = {3, 4, 8}; });
  add([](CopyPlan& plan) { plan.host[0].dtype = DType::kI8; });
  add([](CopyPlan& plan) { plan.job.width = 9; });
  add([](CopyPlan& plan) { plan.job.boxes = 1; });
  add([](CopyPlan& plan) { plan.job.layout = Layout::kNchw; });
  // Crops, and no column of their places: the one before the work is that of the labels.
  add([](CopyPlan& plan) { plan.crops = {.bytes = 4096, .samples = 4096}; });
  const auto add_crops = [&](auto change) {
    add([&](CopyPlan& plan) {
      plan.crops = {.bytes = 4096, .samples = 4096};
      plan.host.insert(plan.host.end() - 1, {"crop", DType::kU64, {}});
      change(plan);
    });
  };
  add_crops([&](CopyPlan& plan) {
    EXPECT_EQ(code(plan, 2), std::nullopt);
    plan.device.push_back(plan.host[2]);  // the places would be delivered
  });
  add_crops([](CopyPlan& plan) { plan.host[2].dtype = DType::kI64; });
  add_crops([](CopyPlan& plan) { plan.host[2].row_shape = {2}; });
  add_crops([](CopyPlan& plan) { plan.has_deferred_ops = false; });
  add_crops([](CopyPlan& plan) {
    plan.has_work = false;
    plan.host.pop_back();
  });
  for (size_t i = 0; i < wrong.size(); ++i) {
    EXPECT_EQ(code(wrong[i].first, wrong[i].second), Code::kInvalidArgument) << i;
  }
}

}  // namespace
}  // namespace stoker
