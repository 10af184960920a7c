// FakeState: the devices, memory, streams, events and faults of a FakeCuda.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "gpu/backend/host_streams.h"
#include "gpu/backend/own_process.h"
#include "tests/testing/devices/fake_cuda/fake_cuda.h"

namespace stoker::testing {

// Thread-safe.
class FakeState {
 public:
  struct Capture {
    std::thread::id thread;
    cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
    bool valid = true;
  };
  struct Stream {
    std::shared_ptr<HostStream> thread;
    int device = 0;
    bool legacy = false;               // the legacy default stream
    bool blocking = false;             // is ordered with it
    std::optional<Capture> capture{};  // under the state's mutex
  };
  struct Event {
    HostEvent event;
    int device = 0;
    bool timed = false;
  };
  struct Entered {
    cudaError_t now = cudaSuccess;    // the call fails
    cudaError_t later = cudaSuccess;  // its work does
  };

  explicit FakeState(const FakeMachine& machine);
  ~FakeState();

  static std::shared_ptr<FakeState> Installed();  // null: there is none
  static void Install(std::shared_ptr<FakeState> state);

  const FakeMachine& machine() const { return machine_; }
  void EndStreams();
  void Inject(const FakeFault& fault);
  Entered Enter(const char* function);  // counts the call
  cudaError_t DriverError() const;      // why calls fail, for example in a forked child
  cudaError_t Violate(std::string what);

  // Contexts. The stack is the calling thread's: devices, the current one last.
  void MakeContext(int device);
  std::vector<int>& Stack();
  int Current();  // creates the first device's context if the thread has none, as CUDA does
  cudaError_t Lost(int device) const;
  void Lose(int device, cudaError_t error);

  cudaError_t Allocate(int device, size_t bytes, void** data);
  cudaError_t Free(void* data);
  bool IsDeviceMemory(int device, const void* data, size_t bytes) const;
  cudaError_t Pin(void* data, size_t bytes);
  cudaError_t Unpin(void* data);
  cudaError_t AllocatePinned(size_t bytes, void** data);
  cudaError_t FreePinned(void* data);
  bool IsPinned(const void* data, size_t bytes) const;

  cudaError_t MakeStream(int device, unsigned flags, cudaStream_t* handle);
  cudaError_t DestroyStream(cudaStream_t handle);
  // Null if there is no such stream. 0, 1, 2: the device's default streams.
  std::shared_ptr<Stream> FindStream(cudaStream_t handle, int device);

  // Captures into graphs. CUDA's documentation is cited where it says so.
  void BeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode);
  bool EndCapture(cudaStream_t handle);  // whether there is a graph
  // Whether CUDA prohibits unsafe calls to the calling thread, which has this mode
  // (cuThreadExchangeStreamCaptureMode in cuda.h).
  bool Prohibits(cudaStreamCaptureMode mode) const;
  // Invalidates the captures of a device's streams, as calls on the whole context do; returns
  // whether there were any.
  bool InvalidateCaptures(int device);
  // "If this is called on CU_STREAM_LEGACY while a blocking stream in the same context is
  // capturing, it will return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT. The blocking stream capture is
  // not invalidated." (cuStreamIsCapturing in cuda.h)
  cudaError_t CaptureStatus(const Stream& stream, cudaStreamCaptureStatus* status) const;
  // The error of work that is given to a stream in capture, or to the legacy stream meanwhile; it
  // invalidates the capture. CUDA would make the work part of the graph instead, except for waits
  // for events from outside of it (CUDA_ERROR_STREAM_CAPTURE_ISOLATION).
  cudaError_t GiveInCapture(Stream& stream);

  cudaError_t MakeEvent(int device, bool timed, cudaEvent_t* handle);
  cudaError_t DestroyEvent(cudaEvent_t handle);
  std::shared_ptr<Event> FindEvent(cudaEvent_t handle) const;
  std::vector<std::shared_ptr<HostStream>> Threads(int device) const;  // of its streams
  void AwaitStreams(int device);
  // If `work` returns an error, or `later` is one, the device is lost, and all its calls fail.
  void Give(Stream& stream, cudaError_t later, std::function<cudaError_t()> work);

  int Calls(const std::string& function) const;
  std::vector<std::string> Called() const;
  std::vector<bool> Contexts() const;
  FakeHeld Held() const;
  std::vector<std::string> Violations() const;

 private:
  struct Allocation {
    size_t bytes = 0;
    int device = 0;
  };

  void* NextHandle();
  bool IsUnusable(const Stream& legacy) const;  // under mutex_: a blocking stream is captured

  const FakeMachine machine_;
  const OwnProcess process_;
  mutable std::mutex mutex_;
  uintptr_t handles_ = 0;
  std::map<std::string, int> calls_;
  std::vector<FakeFault> faults_;
  std::vector<std::string> violations_;
  std::vector<bool> contexts_;
  std::vector<cudaError_t> lost_;
  uint64_t allocated_bytes_ = 0;
  std::map<uintptr_t, Allocation> allocations_;
  std::map<uintptr_t, size_t> pinned_;
  std::set<uintptr_t> own_pinned_;  // those of AllocatePinned
  std::map<void*, std::shared_ptr<Stream>> streams_;
  std::map<int, std::shared_ptr<Stream>> own_streams_;
  std::vector<std::shared_ptr<Stream>> ended_;  // destroyed, but may have pending work
  std::map<void*, std::shared_ptr<Event>> events_;
};

}  // namespace stoker::testing
