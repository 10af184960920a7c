// FakeCuda: a simulated machine with CUDA. gpu/backend/device_cuda.cc runs on it as on a real one.
//
// Device memory is host memory, streams are threads (gpu/backend/host_streams.h), kernels are their
// host versions. It is stricter than CUDA: it reports what would be undefined there, even if it may
// work.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gpu/backend/device.h"
#include "gpu/backend/host_streams.h"
#include "tests/testing/devices/fake_cuda/cuda_runtime_api.h"

namespace stoker::testing {

class FakeState;

struct FakeMachine {
  int devices = 1;
  int driver = 13000;  // the installed version of CUDA; 0 means none
  uint64_t device_bytes = uint64_t{1} << 30;
  BeforeWork before_work{};  // called before each piece of a stream's work, on its thread
};

// Makes the `nth` call of a function from now on fail.
struct FakeFault {
  std::string call;  // "cudaMemcpyAsync", "cuCtxPushCurrent", "LaunchDeferredOps"
  int nth = 1;
  cudaError_t error = cudaErrorUnknown;
  // The call succeeds, and the work it gave to the stream fails: for functions that enqueue work.
  // As in CUDA, all later calls on the device fail, too.
  bool later = false;
};

// Returns the number of allocations on all devices together.
struct FakeHeld {
  int allocations = 0, pinned = 0, streams = 0, events = 0;
  friend bool operator==(const FakeHeld&, const FakeHeld&) = default;
};

// During its lifetime CUDA's functions use it; there is one at a time. Without one they report that
// the runtime is being unloaded, as at the end of a process. Thread-safe.
class FakeCuda {
 public:
  explicit FakeCuda(const FakeMachine& machine = {});
  ~FakeCuda();  // ends the streams' work first

  void Inject(const FakeFault& fault);

  // Begins to capture a stream into a graph, on the calling thread, as cudaStreamBeginCapture does.
  // As in CUDA, some calls invalidate captures (see FakeState::InvalidateCaptures). A call that the
  // mode prohibits to other threads is a violation.
  void BeginCapture(DeviceStream stream, cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal);
  // Ends it, as cudaStreamEndCapture does; returns whether it gave a graph: false if a call has
  // invalidated the capture.
  bool EndCapture(DeviceStream stream);
  // Makes a stream that is ordered with the legacy default stream, as cudaStreamCreate does: here
  // only in what the legacy stream says of captures.
  DeviceStream MakeBlockingStream();

  int Calls(const std::string& function) const;  // so far
  int Calls() const;
  std::vector<std::string> Called() const;  // the functions, in alphabetical order
  int Contexts() const;                     // contexts made so far
  bool HasContext(int device) const;
  FakeHeld Held() const;

  // The violations: a copy from memory that is no longer pinned, use of a destroyed stream, …
  std::vector<std::string> Violations() const;

 private:
  std::shared_ptr<FakeState> state_;
};

// Device::Open and LookForCuda on a FakeCuda: device_cuda.cc compiled a second time.
Result<std::shared_ptr<Device>> OpenFakeDevice(int ordinal = 0);
CudaReport LookForFakeCuda();

}  // namespace stoker::testing
