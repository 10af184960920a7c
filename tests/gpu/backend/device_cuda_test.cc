// Tests what is specific to CUDA (gpu/backend/device_cuda.cc), on a FakeCuda.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "gpu/backend/device.h"
#include "gpu/ops/deferred_ops_job.h"
#include "tests/testing/devices/devices.h"
#include "tests/testing/devices/fake_cuda/fake_cuda.h"

namespace stoker {
namespace {

using testing::FakeCuda;
using testing::FakeHeld;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::OpenFakeDevice;
using testing::PinnedBytes;

constexpr size_t kBytes = 3 * 64;

// Functions that release objects: their failures are reported to nobody.
const std::set<std::string> kUntold = {"cudaFree",           "cudaFreeHost",
                                       "cudaHostUnregister", "cudaStreamDestroy",
                                       "cudaEventDestroy",   "cuCtxPopCurrent"};
// Functions that every other function calls, including those above.
const std::set<std::string> kAround = {"cuCtxPushCurrent", "cudaThreadExchangeStreamCaptureMode"};

// Functions whose failure has a fallback: the node is unknown, RecordAll waits.
const std::set<std::string> kOptional = {"cudaDeviceGetPCIBusId",
                                         "cudaGetDriverEntryPointByVersion"};

// Keeps the result of `made`, and `undo` for the end.
class Undo {
 public:
  ~Undo() {
    for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) (*step)();
  }
  template <typename Value, typename Give>
  Status Keep(Result<Value> made, Value& value, const Give& give_back) {
    if (!made) return std::move(made).error();
    value = *made;
    steps_.push_back([give_back, given = *made] { give_back(given); });
    return {};
  }

 private:
  std::vector<std::function<void()>> steps_;
};

// Calls each of a device's functions at least once; releases what it made, also if one fails.
Status UseAll(Device& device, uint8_t* pages) {
  Undo undo;
  const auto free = [&](void* data) { device.Free(data); };
  const auto destroy = [&](DeviceEvent made) { device.Destroy(made); };
  void *stored = nullptr, *finished = nullptr, *own_pinned = nullptr;
  DeviceStream stream;
  DeviceEvent event, begin, end;
  bool pinned = false;
  const auto finish = [&] {
    return device.ApplyDeferred(
        {.from = static_cast<uint8_t*>(stored), .to = finished, .rows = 1, .height = 8, .width = 8},
        stream);
  };
  const std::vector<std::function<Status()>> steps = {
      [&] {
        Status status = device.Pin(pages, 4096);
        Result<bool> done = status.ok() ? Result<bool>(true) : Result<bool>(status.error());
        return undo.Keep(done, pinned, [&](bool) { device.Unpin(pages); });
      },
      [&] {
        return undo.Keep(device.AllocatePinned(kBytes), own_pinned,
                         [&](void* data) { device.FreePinned(data); });
      },
      [&] { return undo.Keep(device.Allocate(kBytes), stored, free); },
      [&] { return undo.Keep(device.Allocate(kBytes), finished, free); },
      [&] {
        return undo.Keep(device.MakeStream(), stream, [&](DeviceStream s) { device.Destroy(s); });
      },
      [&] { return undo.Keep(device.MakeEvent(), event, destroy); },
      [&] { return undo.Keep(device.MakeEvent(true), begin, destroy); },
      [&] { return undo.Keep(device.MakeEvent(true), end, destroy); },
      [&] { return device.Record(begin, stream); },
      [&] {
        const Result<bool> capture = device.IsCapturing(stream);
        return capture.ok() ? Status() : Status(capture.error());
      },
      [&] { return device.Occupy(1000, stream); },
      [&] { return device.Record(end, stream); },
      [&] { return device.Synchronize(end); },
      [&] {
        const Result<uint64_t> elapsed = device.Elapsed(begin, end);
        return elapsed.ok() ? Status() : Status(elapsed.error());
      },
      [&] { return device.Wait(stream, event); },
      [&] { return device.Copy(stored, pages, kBytes, stream); },
      finish,
      [&] { return device.Copy(pages + kBytes, finished, kBytes, stream); },
      [&] { return device.Record(event, stream); },
      [&] { return device.Synchronize(event); },
      [&] {
        const Result<bool> done = device.IsDone(event);
        return done.ok() ? Status() : Status(done.error());
      },
      [&] { return device.RecordAll(event); },
      [&] { return device.SynchronizeAll(); },
  };
  for (const auto& step : steps) {
    if (Status status = step(); !status) return status;
  }
  return {};
}

Status OpenAndUseAll(int ordinal) {
  alignas(4096) static uint8_t pages[4096];
  const Result<std::shared_ptr<Device>> device = OpenFakeDevice(ordinal);
  return device.ok() ? UseAll(**device, pages) : Status(device.error());
}

int CurrentDevice() {
  int current = -1;
  EXPECT_EQ(cudaGetDevice(&current), cudaSuccess);
  return current;
}

TEST(DeviceCudaTest, HostDeviceMakesNoCudaCalls) {
  const FakeCuda cuda;
  const std::shared_ptr<Device> host = Device::Open({DeviceName::Kind::kHost, 0}).value();
  const PinnedBytes bytes(host, 64);
  host->SynchronizeAll().value();
  EXPECT_THAT(cuda.Called(), IsEmpty());
}

TEST(DeviceCudaTest, ReleasesEverythingItMakes) {
  const FakeCuda cuda;
  ASSERT_TRUE(OpenAndUseAll(0).ok());
  EXPECT_EQ(cuda.Held(), FakeHeld());
  EXPECT_THAT(cuda.Violations(), IsEmpty());
  EXPECT_EQ(cuda.Contexts(), 1);
}

TEST(DeviceCudaTest, CreatesOnlyItsOwnContext) {
  const FakeCuda cuda({.devices = 3});
  const std::shared_ptr<Device> device = OpenFakeDevice(1).value();
  EXPECT_EQ(cuda.Contexts(), 1);
  const DeviceEvent event = device->MakeEvent().value();
  std::thread([&] {  // one that has never seen CUDA
    const DeviceStream stream = device->MakeStream().value();
    device->Record(event, stream).value();
    device->Record(event, DeviceStream{}).value();  // the device's own default stream
    device->Synchronize(event).value();
    device->Destroy(stream);
    EXPECT_EQ(CurrentDevice(), 0);
  })
      .join();
  device->Destroy(event);
  EXPECT_TRUE(cuda.HasContext(1));
  EXPECT_EQ(cuda.Contexts(), 1);
  EXPECT_THAT(cuda.Violations(), IsEmpty());
}

TEST(DeviceCudaTest, RestoresTheThreadsCurrentDevice) {
  const FakeCuda cuda({.devices = 3});
  ASSERT_EQ(cudaSetDevice(2), cudaSuccess);
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  ASSERT_TRUE(OpenAndUseAll(1).ok());
  EXPECT_EQ(CurrentDevice(), 2);
  ASSERT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
  EXPECT_EQ(mode, cudaStreamCaptureModeGlobal);
  EXPECT_FALSE(cuda.HasContext(0));
}

TEST(DeviceCudaTest, DevicesShareOnlyPinnedMemory) {
  const FakeCuda cuda({.devices = 2});
  const std::shared_ptr<Device> first = OpenFakeDevice(0).value(),
                                second = OpenFakeDevice(1).value();
  EXPECT_EQ(second->name(), (DeviceName{DeviceName::Kind::kCuda, 1}));
  const PinnedBytes bytes(first, 4096);
  for (Device* const device : {first.get(), second.get()}) {
    const DeviceStream stream = device->MakeStream().value();
    void* const memory = device->Allocate(64).value();
    device->Copy(memory, bytes.data(), 64, stream).value();
    device->SynchronizeAll().value();
    Device* const other = device == first.get() ? second.get() : first.get();
    const DeviceStream others = other->MakeStream().value();
    EXPECT_FALSE(other->Copy(memory, bytes.data(), 64, others).ok()) << "of the fake";
    other->Destroy(others);
    device->Free(memory);
    device->Destroy(stream);
  }
}

TEST(DeviceCudaTest, AStreamMayWaitForAnotherDevicesEvent) {
  const FakeCuda cuda({.devices = 2});
  const std::shared_ptr<Device> first = OpenFakeDevice(0).value(),
                                second = OpenFakeDevice(1).value();
  const DeviceStream made = first->MakeStream().value(), waits = second->MakeStream().value();
  const DeviceEvent event = first->MakeEvent().value();
  first->Record(event, made).value();
  second->Wait(waits, event).value();
  second->SynchronizeAll().value();
  first->Destroy(event);
  first->Destroy(made);
  second->Destroy(waits);
  EXPECT_THAT(cuda.Violations(), IsEmpty());
}

TEST(DeviceCudaTest, FailureOfAnyCallIsReportedAndLeaksNothing) {
  std::vector<std::string> functions;
  std::vector<int> calls;
  {
    const FakeCuda cuda({.devices = 2});
    ASSERT_TRUE(OpenAndUseAll(1).ok());
    functions = cuda.Called();
    for (const std::string& function : functions) calls.push_back(cuda.Calls(function));
  }
  EXPECT_GT(functions.size(), 20u);
  for (size_t f = 0; f < functions.size(); ++f) {
    const std::string& function = functions[f];
    for (int nth = 1; nth <= calls[f]; ++nth) {
      SCOPED_TRACE(function + ", call " + std::to_string(nth));
      FakeCuda cuda({.devices = 2});
      cuda.Inject({.call = function, .nth = nth});
      const Status status = OpenAndUseAll(1);
      if (kUntold.contains(function)) {
        EXPECT_TRUE(status.ok());
      } else if (!status.ok()) {
        EXPECT_TRUE(status.error().code == Code::kUnavailable ||
                    status.error().code == Code::kFailedPrecondition);
        const bool kernel = function.starts_with("Launch");
        EXPECT_THAT(status.error().cause,
                    HasSubstr(kernel ? "the kernel " + function.substr(6) : function));
      } else {
        EXPECT_TRUE(kAround.contains(function) || kOptional.contains(function))
            << "nobody was told";
      }
      if (!kUntold.contains(function) && !kAround.contains(function)) {
        EXPECT_EQ(cuda.Held(), FakeHeld());
        EXPECT_EQ(cudaGetLastError(), cudaSuccess);
      }
      if (function != "cuCtxPopCurrent") {
        EXPECT_EQ(CurrentDevice(), 0);
      }
      EXPECT_FALSE(cuda.HasContext(0));
      EXPECT_THAT(cuda.Violations(), IsEmpty());
    }
  }
}

TEST(DeviceCudaTest, EventsReportAsynchronousErrors) {
  for (const char* function : {"cudaMemcpyAsync", "LaunchDeferredOps", "cudaEventRecord"}) {
    SCOPED_TRACE(function);
    FakeCuda cuda;
    cuda.Inject({.call = function, .error = cudaErrorIllegalAddress, .later = true});
    const Status status = OpenAndUseAll(0);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, Code::kUnavailable);
    EXPECT_THAT(status.error().cause, HasSubstr("on cuda:0: an illegal memory access"));
    EXPECT_FALSE(OpenAndUseAll(0).ok()) << "the device is lost";
    EXPECT_THAT(cuda.Violations(), IsEmpty());
  }
}

// PyTorch and others capture a step once and replay it.
TEST(DeviceCudaTest, DoesNotDisturbStreamCaptures) {
  FakeCuda cuda;
  const std::shared_ptr<Device> device = OpenFakeDevice().value();
  const DeviceStream captured = device->MakeStream().value();
  const DeviceEvent event = device->MakeEvent().value();
  cuda.BeginCapture(captured);
  for (const Status& status : {device->Wait(captured, event), device->Record(event, captured)}) {
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, Code::kFailedPrecondition);
  }
  const DeviceStream other = device->MakeStream().value();
  EXPECT_TRUE(device->IsCapturing(captured).value());
  for (const DeviceStream stream : {other, DeviceStream{}, LegacyDefaultStream()}) {
    EXPECT_FALSE(device->IsCapturing(stream).value());
  }
  void* const memory = device->Allocate(64).value();
  std::vector<uint8_t> bytes(64);
  device->Copy(memory, bytes.data(), 64, other).value();
  device->Record(event, other).value();
  EXPECT_TRUE(device->IsDone(event).ok());
  device->Synchronize(event).value();
  EXPECT_TRUE(cuda.EndCapture(captured));
  EXPECT_FALSE(device->IsCapturing(captured).value());
  device->RecordAll(event).value();
  device->Wait(captured, event).value();
  device->Free(memory);
  device->Destroy(event);
  for (const DeviceStream stream : {captured, other}) device->Destroy(stream);
  EXPECT_THAT(cuda.Violations(), IsEmpty());
}

// cuda.h says so of cuCtxRecordEvent, and the programming guide of cudaDeviceSynchronize.
TEST(DeviceCudaTest, CallsOnTheWholeContextInvalidateCaptures) {
  for (const bool waits : {false, true}) {
    FakeCuda cuda;
    const std::shared_ptr<Device> device = OpenFakeDevice().value();
    const DeviceStream captured = device->MakeStream().value();
    const DeviceEvent event = device->MakeEvent().value();
    cuda.BeginCapture(captured, cudaStreamCaptureModeThreadLocal);
    const Status status = waits ? device->SynchronizeAll() : device->RecordAll(event);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, Code::kFailedPrecondition);
    EXPECT_TRUE(device->IsCapturing(captured).value());
    EXPECT_FALSE(cuda.EndCapture(captured));
    device->RecordAll(event).value();
    device->Destroy(event);
    device->Destroy(captured);
    EXPECT_THAT(cuda.Violations(), IsEmpty());
  }
}

TEST(DeviceCudaTest, TheLegacyStreamTellsOfCapturesOfBlockingStreams) {
  FakeCuda cuda;
  const std::shared_ptr<Device> device = OpenFakeDevice().value();
  const DeviceStream captured = cuda.MakeBlockingStream();
  const DeviceEvent event = device->MakeEvent().value();
  EXPECT_FALSE(device->IsCapturing(LegacyDefaultStream()).value());
  cuda.BeginCapture(captured);
  EXPECT_TRUE(device->IsCapturing(LegacyDefaultStream()).value());
  const Status recorded = device->Record(event, LegacyDefaultStream());
  ASSERT_FALSE(recorded.ok());
  EXPECT_EQ(recorded.error().code, Code::kFailedPrecondition);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_TRUE(cuda.EndCapture(captured));
  device->Record(event, LegacyDefaultStream()).value();
  device->Destroy(event);
  device->Destroy(captured);
  EXPECT_THAT(cuda.Violations(), IsEmpty());
}

// A build with CUDA 12 may run on a driver older than CUDA 12.5, which has no cuCtxRecordEvent.
TEST(DeviceCudaTest, RecordAllWorksWithoutCuCtxRecordEvent) {
  FakeCuda cuda;
  cuda.Inject({.call = "cudaGetDriverEntryPointByVersion", .nth = 5});
  const std::shared_ptr<Device> device = OpenFakeDevice().value();
  const DeviceStream stream = device->MakeStream().value();
  const DeviceEvent event = device->MakeEvent().value(), all = device->MakeEvent().value();
  device->Occupy(1000, stream).value();
  device->Record(event, stream).value();
  device->RecordAll(all).value();
  EXPECT_TRUE(device->IsDone(all).value());
  EXPECT_TRUE(device->IsDone(event).value());
  EXPECT_EQ(cuda.Calls("cuCtxRecordEvent"), 0);
  for (const DeviceEvent made : {event, all}) device->Destroy(made);
  device->Destroy(stream);
}

TEST(DeviceCudaTest, OutOfMemoryIsResourceExhausted) {
  FakeCuda cuda;
  const std::shared_ptr<Device> device = OpenFakeDevice().value();
  cuda.Inject({.call = "cudaHostRegister", .error = cudaErrorMemoryAllocation});
  alignas(4096) static uint8_t page[4096];
  const Status pinned = device->Pin(page, sizeof page);
  ASSERT_FALSE(pinned.ok());
  EXPECT_EQ(pinned.error().code, Code::kResourceExhausted);
  EXPECT_EQ(
      pinned.error().cause,
      "cudaHostRegister on cuda:0: out of memory (cudaErrorMemoryAllocation), for 4096 bytes");
}

TEST(DeviceCudaTest, OutOfMemoryNamesThoseWhoTakeItInAdvance) {
  const FakeCuda cuda({.device_bytes = 1 << 20});
  const std::shared_ptr<Device> device = OpenFakeDevice().value();
  const Result<void*> memory = device->Allocate(2 << 20);
  ASSERT_FALSE(memory.ok());
  EXPECT_EQ(memory.error().code, Code::kResourceExhausted);
  EXPECT_THAT(memory.error().cause, HasSubstr("for 2097152 bytes"));
  for (const char* const variable :
       {"XLA_PYTHON_CLIENT_PREALLOCATE=false", "TF_FORCE_GPU_ALLOW_GROWTH=true"}) {
    EXPECT_THAT(memory.error().advice, HasSubstr(variable));
  }
}

// Memory that cannot be pinned makes copies slower, and not wrong: CUDA copies from it, too.
TEST(DeviceCudaTest, AllocatesPinnedMemory) {
  FakeCuda cuda;
  const std::shared_ptr<Device> device = OpenFakeDevice().value();
  void* const pinned = device->AllocatePinned(10000).value();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(pinned) % 4096, 0u);
  EXPECT_EQ(cuda.Held().pinned, 1);
  device->FreePinned(pinned);
  EXPECT_EQ(cuda.Held(), FakeHeld());
  cuda.Inject({.call = "cudaHostAlloc", .error = cudaErrorMemoryAllocation});
  const Result<void*> none = device->AllocatePinned(10000);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, Code::kResourceExhausted);
  EXPECT_EQ(none.error().cause,
            "cudaHostAlloc on cuda:0: out of memory (cudaErrorMemoryAllocation), for 10000 bytes");
  EXPECT_THAT(cuda.Violations(), IsEmpty());
}

TEST(DeviceCudaTest, DeviceMayOutliveTheCudaRuntime) {
  auto cuda = std::make_unique<FakeCuda>();
  const std::shared_ptr<Device> device = OpenFakeDevice().value();
  const DeviceStream stream = device->MakeStream().value();
  const DeviceEvent event = device->MakeEvent().value();
  void* const memory = device->Allocate(64).value();
  alignas(4096) static uint8_t page[4096];
  device->Pin(page, sizeof page).value();
  cuda.reset();  // as when the process ends
  const Status status = device->Record(event, stream);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Code::kFailedPrecondition);
  device->Unpin(page);
  device->Free(memory);
  device->Destroy(event);
  device->Destroy(stream);
}

}  // namespace
}  // namespace stoker
