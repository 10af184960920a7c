// The common start of each of CUDA's functions on the installed FakeCuda.
#pragma once

#include <memory>
#include <string>

#include "tests/testing/devices/fake_cuda/fake_state.h"

namespace stoker::testing {

// State of the calling thread, as in CUDA.
struct FakeThread {
  cudaError_t last_error = cudaSuccess;
  cudaStreamCaptureMode capture_mode = cudaStreamCaptureModeGlobal;
};
FakeThread& TheFakeThread();

inline cudaError_t Remember(cudaError_t error) {
  if (error != cudaSuccess) TheFakeThread().last_error = error;
  return error;
}

// A call of `name` that needs no context.
template <typename Call>
cudaError_t Run(const char* name, const Call& call) {
  const std::shared_ptr<FakeState> state = FakeState::Installed();
  if (state == nullptr) return Remember(cudaErrorCudartUnloading);
  if (const cudaError_t error = state->DriverError(); error != cudaSuccess) return Remember(error);
  const FakeState::Entered entered = state->Enter(name);
  if (entered.now != cudaSuccess) return Remember(entered.now);
  return Remember(call(*state, entered.later));
}

// Checks a call that CUDA prohibits in this thread's capture mode while a capture is on
// (cudaThreadExchangeStreamCaptureMode). CUDA prohibits only calls that are "potentially unsafe",
// and does not list them; here they are all.
inline cudaError_t CheckCapture(FakeState& state, const char* name) {
  if (!state.Prohibits(TheFakeThread().capture_mode)) return cudaSuccess;
  return state.Violate(std::string(name) + " disturbs a capture");
}

// A call that uses the thread's current device.
template <typename Call>
cudaError_t RunOnDevice(const char* name, const Call& call) {
  return Run(name, [&](FakeState& state, cudaError_t later) {
    const int device = state.Current();
    cudaError_t error = state.Lost(device);
    if (error == cudaSuccess) error = CheckCapture(state, name);
    return error != cudaSuccess ? error : call(state, device, later);
  });
}

// A call that uses a stream. Work given to a stream in capture becomes part of its graph, and is
// not executed: stoker must never do so.
template <typename Call>
cudaError_t RunOnStream(const char* name, cudaStream_t handle, const Call& call) {
  return RunOnDevice(name, [&](FakeState& state, int device, cudaError_t later) {
    const std::shared_ptr<FakeState::Stream> stream = state.FindStream(handle, device);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    if (const cudaError_t error = state.GiveInCapture(*stream); error != cudaSuccess) {
      (void)state.Violate(std::string(name) + " on a stream that is being captured");
      return error;
    }
    return call(state, *stream, later);
  });
}

}  // namespace stoker::testing
