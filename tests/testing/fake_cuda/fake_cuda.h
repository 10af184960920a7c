// FakeCuda: a machine with CUDA, made up. gpu/device_cuda.cc runs on it as it runs on a real one.
//
// Device memory is host memory, streams are threads (gpu/host_streams.h), kernels are their twins
// on the host. It is stricter than CUDA: what would be undefined there, and may go well, is told.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gpu/device.h"
#include "gpu/host_streams.h"
#include "tests/testing/fake_cuda/cuda_runtime_api.h"

namespace stoker::testing {

class FakeState;

struct FakeMachine {
  int devices = 1;
  int driver = 13000;  // CUDA's version that it has; 0: none is installed
  uint64_t device_bytes = uint64_t{1} << 30;
  BeforeWork before_work{};  // called before each piece of a stream's work, on its thread
};

// The `nth` call from now on of a function fails.
struct FakeFault {
  std::string call;  // "cudaMemcpyAsync", "cuCtxPushCurrent", "LaunchFinish"
  int nth = 1;
  cudaError_t error = cudaErrorUnknown;
  // The call goes well, and what it gave the stream fails: for functions that give one work. As
  // CUDA has it, all later calls on the device fail too.
  bool later = false;
};

// Of all devices together.
struct FakeHeld {
  int allocations = 0, pinned = 0, streams = 0, events = 0;
  friend bool operator==(const FakeHeld&, const FakeHeld&) = default;
};

// While it lives, CUDA's functions see it; one at a time. Else they say that the runtime is being
// unloaded, as they do when a process ends. Any thread.
class FakeCuda {
 public:
  explicit FakeCuda(const FakeMachine& machine = {});
  ~FakeCuda();  // ends the streams' work first

  void Inject(const FakeFault& fault);

  // A stream is being captured into a graph, or none is. What would disturb that is a violation.
  void Capture(bool captures, DeviceStream stream = {});

  int Calls(const std::string& function) const;  // so far
  int Calls() const;
  std::vector<std::string> Called() const;  // the functions, in alphabetical order
  int Contexts() const;                     // that were made
  bool HasContext(int device) const;
  FakeHeld Held() const;

  // What was done wrong: a copy from memory that is no longer pinned, use of a destroyed stream, …
  std::vector<std::string> Violations() const;

 private:
  std::shared_ptr<FakeState> state_;
};

// Device::Open and LookForCuda, but on a FakeCuda: device_cuda.cc compiled once more.
Result<std::shared_ptr<Device>> OpenFakeDevice(int ordinal = 0);
CudaReport LookForFakeCuda();

}  // namespace stoker::testing
