// Batches are taken while streams are captured into CUDA graphs, on the same thread or on another.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/time/stage_times.h"
#include "tests/gpu/staging/copier_setup.h"
#include "tests/testing/effort.h"

namespace stoker {
namespace {

using ::stoker::testing::Await;
using ::stoker::testing::CopierSetup;
using ::stoker::testing::CopierSetupOptions;
using ::stoker::testing::DeviceCall;
using ::stoker::testing::Effort;
using ::stoker::testing::ExpectRight;
using ::stoker::testing::FakeCuda;
using ::stoker::testing::HookedDevice;
using ::stoker::testing::OpenFakeDevice;
using ::stoker::testing::StreamReader;

CopierSetupOptions EndlessEpoch() {
  CopierSetupOptions options;
  options.host.epoch_rows = 1 << 30;
  return options;
}

class DeviceCopierCaptureTest : public ::testing::Test {
 protected:
  ~DeviceCopierCaptureTest() override {
    for (const std::string& violation : cuda_.Violations()) ADD_FAILURE() << violation;
  }

  int Recorded() const { return device_->count(DeviceCall::kRecordAll); }

  // Takes batches on a thread until its destruction, and releases each after `use`.
  class Consumer {
   public:
    using Use = std::function<void(const DeviceBatch&)>;
    Consumer(CopierSetup& setup, Use use)
        : thread_([this, &setup, use = std::move(use)] {
            while (!ended_.load()) {
              Result<DeviceBatch> batch = setup.copier->Next([this] { return ended_.load(); });
              if (!batch.ok()) continue;  // interrupted
              use(*batch);
              batch->Release();
              ++taken_;
            }
          }) {}
    ~Consumer() {
      ended_ = true;
      thread_.join();
    }
    Consumer(const Consumer&) = delete;
    Consumer& operator=(const Consumer&) = delete;
    int taken() const { return taken_.load(); }

   private:
    std::atomic<bool> ended_{false};
    std::atomic<int> taken_{0};
    std::thread thread_;
  };

  FakeCuda cuda_;
  const std::shared_ptr<HookedDevice> device_ =
      std::make_shared<HookedDevice>(OpenFakeDevice().value());
};

// XLA captures parts of its programs by default, in threads of its own (in the mode thread-local);
// PyTorch's torch.cuda.graph captures in the mode global.
TEST_F(DeviceCopierCaptureTest, ACaptureOnAnotherThreadSurvivesBatchesWithNamedStreams) {
  CopierSetup setup(device_, EndlessEpoch());
  StreamReader reader(device_);
  const DeviceStream captured = device_->inner()->MakeStream().value();
  {
    const Consumer consumer(setup, [&, i = 0](const DeviceBatch& batch) mutable {
      batch.MarkUntracked();  // as DLPack does
      batch.RecordStream(reader.stream()).value();
      ExpectRight(reader, batch, 0, i++);
    });
    for (int i = 0; i < Effort(30); ++i) {
      for (const cudaStreamCaptureMode mode :
           {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal,
            cudaStreamCaptureModeRelaxed}) {
        cuda_.BeginCapture(captured, mode);
        const int taken = consumer.taken();
        Await([&] { return consumer.taken() > taken + 5 || Recorded() > 0; });
        EXPECT_TRUE(cuda_.EndCapture(captured));
      }
    }
  }
  EXPECT_EQ(Recorded(), 0);
  EXPECT_EQ(setup.copier->Stats().invalidated_captures, 0u);
  device_->inner()->Destroy(captured);
}

// Users are unknown, and the capture can be seen: of a stream that is ordered with the legacy
// default stream, or of one that another batch is used on.
TEST_F(DeviceCopierCaptureTest, ACaptureThatCanBeSeenSurvivesBatchesOfUnknownUsers) {
  for (const bool blocking : {true, false}) {
    CopierSetup setup(device_, EndlessEpoch());
    const DeviceStream captured =
        blocking ? cuda_.MakeBlockingStream() : device_->inner()->MakeStream().value();
    DeviceBatch held = setup.Next();
    held.RecordStream(captured).value();
    if (blocking) held.Release();
    cuda_.BeginCapture(captured);
    const int before = Recorded();
    {
      const Consumer consumer(setup, [](const DeviceBatch& batch) {
        batch.MarkUntracked();
        batch.Wait().value();
      });
      const int most = blocking ? 3 : 2;  // as many as there is memory for
      Await([&] { return consumer.taken() >= most; });
      std::this_thread::sleep_for(std::chrono::milliseconds(200));  // time enough to disturb it
      EXPECT_EQ(Recorded(), before);
      EXPECT_EQ(consumer.taken(), most) << "the others wait for the capture's end";
      EXPECT_TRUE(cuda_.EndCapture(captured));
      Await([&] { return consumer.taken() > 20; });
    }
    EXPECT_GT(Recorded(), before);
    held.Release();
    device_->inner()->Destroy(captured);
  }
}

// The batch's stream cannot be recorded now. That is no reason to record all streams.
TEST_F(DeviceCopierCaptureTest, ABatchMayBeReleasedWhileItsStreamIsCaptured) {
  CopierSetup setup(device_, EndlessEpoch());
  StreamReader reader(device_), other(device_);
  for (int i = 0; i < 30;) {
    DeviceBatch first = setup.Next(), second = setup.Next();
    ExpectRight(reader, first, 0, i++);
    ExpectRight(other, second, 0, i++);
    cuda_.BeginCapture(reader.stream());
    first.Release();
    second.Release();
    std::thread([&] { ExpectRight(other, setup.Next(), 0, i++); }).join();
    std::thread([&] { ExpectRight(other, setup.Next(), 0, i++); }).join();
    EXPECT_TRUE(cuda_.EndCapture(reader.stream()));
  }
  EXPECT_EQ(Recorded(), 0);
}

// A capture that nothing tells of is over when RecordAll reports it. The next one is left alone for
// longer.
TEST_F(DeviceCopierCaptureTest, BacksOffFromCapturesThatCannotBeSeen) {
  std::vector<uint64_t> refused;  // on the consumer's thread
  CopierSetupOptions options = EndlessEpoch();
  const auto device =
      std::make_shared<HookedDevice>(device_->inner(), [&refused](DeviceCall call) -> Status {
        if (call != DeviceCall::kRecordAll || refused.size() == 4) return {};
        refused.push_back(NowNanoseconds());
        return Error{Code::kFailedPrecondition, "a stream is being captured"};
      });
  CopierSetup setup(device, options);
  for (int i = 0; i < 20; ++i) {
    const DeviceBatch batch = setup.Next();
    batch.MarkUntracked();
    batch.Wait().value();
  }
  ASSERT_EQ(refused.size(), 4u);
  EXPECT_EQ(setup.copier->Stats().invalidated_captures, 4u);
  for (size_t i = 1; i < refused.size(); ++i) {
    EXPECT_GE(refused[i] - refused[i - 1], uint64_t{50'000'000} << (i - 1)) << i;
  }
}

// Batches whose users are unknown still arrive, and are right, after captures that came to harm.
TEST_F(DeviceCopierCaptureTest, UnknownUsersAndUnseenCapturesGoOn) {
  CopierSetup setup(device_, EndlessEpoch());
  const DeviceStream captured = device_->inner()->MakeStream().value();
  StreamReader reader(device_);
  {
    const Consumer consumer(setup, [&, i = 0](const DeviceBatch& batch) mutable {
      batch.MarkUntracked();
      ExpectRight(reader, batch, 0, i++);
    });
    cuda_.BeginCapture(captured);
    Await([&] { return setup.copier->Stats().invalidated_captures > 0; });
    EXPECT_FALSE(cuda_.EndCapture(captured)) << "documented in docs/gpu.md";
    const int taken = consumer.taken();
    Await([&] { return consumer.taken() > taken + 20; });
  }
  device_->inner()->Destroy(captured);
}

}  // namespace
}  // namespace stoker
