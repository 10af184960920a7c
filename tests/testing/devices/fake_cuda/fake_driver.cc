// CUDA's driver functions on the installed FakeCuda: devices and contexts.
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "tests/testing/devices/fake_cuda/fake_call.h"

namespace stoker::testing {

FakeThread& TheFakeThread() {
  thread_local FakeThread mine;
  return mine;
}

}  // namespace stoker::testing

namespace {

using stoker::testing::FakeState;
using stoker::testing::Remember;
using stoker::testing::Run;
using stoker::testing::TheFakeThread;

CUresult AsResult(cudaError_t error) { return static_cast<CUresult>(error); }

CUresult GetDevice(CUdevice* device, int ordinal) {
  return AsResult(Run("cuDeviceGet", [&](FakeState& state, cudaError_t) {
    if (ordinal < 0 || ordinal >= state.machine().devices) return cudaErrorInvalidDevice;
    *device = ordinal;
    return cudaSuccess;
  }));
}

// A context is its device's number, from 1.
CUresult RetainContext(CUcontext* context, CUdevice device) {
  return AsResult(Run("cuDevicePrimaryCtxRetain", [&](FakeState& state, cudaError_t) {
    state.MakeContext(device);
    *context = reinterpret_cast<CUcontext>(uintptr_t(device) + 1);
    return cudaSuccess;
  }));
}

CUresult PushContext(CUcontext context) {
  return AsResult(Run("cuCtxPushCurrent", [&](FakeState& state, cudaError_t) {
    state.Stack().push_back(static_cast<int>(reinterpret_cast<uintptr_t>(context)) - 1);
    return cudaSuccess;
  }));
}

CUresult PopContext(CUcontext* context) {
  return AsResult(Run("cuCtxPopCurrent", [&](FakeState& state, cudaError_t) {
    std::vector<int>& stack = state.Stack();
    if (stack.empty()) return state.Violate("cuCtxPopCurrent without a context");
    *context = reinterpret_cast<CUcontext>(uintptr_t(stack.back()) + 1);
    stack.pop_back();
    return cudaSuccess;
  }));
}

// "The API will return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED if the specified context hCtx has a
// stream in the capture mode. In such a case, the call will invalidate all the conflicting
// captures." (cuda.h)
CUresult RecordContext(CUcontext context, CUevent event) {
  return AsResult(Run("cuCtxRecordEvent", [&](FakeState& state, cudaError_t) {
    const int device = static_cast<int>(reinterpret_cast<uintptr_t>(context)) - 1;
    if (state.Lost(device) != cudaSuccess) return state.Lost(device);
    if (state.InvalidateCaptures(device)) return cudaErrorStreamCaptureUnsupported;
    const std::shared_ptr<FakeState::Event> found = state.FindEvent(event);
    if (found == nullptr || found->device != device) {
      return state.Violate("cuCtxRecordEvent of another device's event");
    }
    found->event.Record(state.Threads(device));
    return cudaSuccess;
  }));
}

}  // namespace

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorInitializationError:
      return "cudaErrorInitializationError";
    case cudaErrorIllegalAddress:
      return "cudaErrorIllegalAddress";
    default:
      return "unrecognized error code";
  }
}

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInitializationError:
      return "initialization error";
    case cudaErrorIllegalAddress:
      return "an illegal memory access was encountered";
    default:
      return "unrecognized error code";
  }
}

cudaError_t cudaGetLastError() { return std::exchange(TheFakeThread().last_error, cudaSuccess); }

cudaError_t cudaDriverGetVersion(int* version) {
  const std::shared_ptr<FakeState> state = FakeState::Installed();
  if (state == nullptr) return Remember(cudaErrorCudartUnloading);
  *version = state->machine().driver;
  return Remember(state->Enter("cudaDriverGetVersion").now);
}

cudaError_t cudaGetDeviceCount(int* count) {
  return Run("cudaGetDeviceCount", [&](FakeState& state, cudaError_t) {
    *count = state.machine().devices;
    return cudaSuccess;
  });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return Run("cudaGetDeviceProperties", [&](FakeState& state, cudaError_t) {
    if (device < 0 || device >= state.machine().devices) return cudaErrorInvalidDevice;
    *properties = {};
    std::snprintf(properties->name, sizeof properties->name, "Fake GPU %d", device);
    properties->totalGlobalMem = state.machine().device_bytes;
    properties->major = 9;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetPCIBusId(char* bus, int length, int device) {
  return Run("cudaDeviceGetPCIBusId", [&](FakeState& state, cudaError_t) {
    if (device < 0 || device >= state.machine().devices) return cudaErrorInvalidDevice;
    std::snprintf(bus, length, "FFFF:%02X:00.0", 0xF0 + device);
    return cudaSuccess;
  });
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  return Run("cudaGetDriverEntryPointByVersion", [&](FakeState& state, cudaError_t) {
    const std::string name = symbol;
    *function = nullptr;
    if (name == "cuDeviceGet") *function = reinterpret_cast<void*>(&GetDevice);
    if (name == "cuDevicePrimaryCtxRetain") *function = reinterpret_cast<void*>(&RetainContext);
    if (name == "cuCtxPushCurrent") *function = reinterpret_cast<void*>(&PushContext);
    if (name == "cuCtxPopCurrent") *function = reinterpret_cast<void*>(&PopContext);
    if (name == "cuCtxRecordEvent" && state.machine().driver >= 12050) {
      *function = reinterpret_cast<void*>(&RecordContext);
    }
    *result =
        *function == nullptr ? cudaDriverEntryPointSymbolNotFound : cudaDriverEntryPointSuccess;
    return cudaSuccess;
  });
}

cudaError_t cudaGetDevice(int* device) {
  return Run("cudaGetDevice", [&](FakeState& state, cudaError_t) {
    const std::vector<int>& stack = state.Stack();
    *device = stack.empty() ? 0 : stack.back();
    return cudaSuccess;
  });
}

// Makes the device's context, as it does from CUDA 12 on.
cudaError_t cudaSetDevice(int device) {
  return Run("cudaSetDevice", [&](FakeState& state, cudaError_t) {
    if (device < 0 || device >= state.machine().devices) return cudaErrorInvalidDevice;
    state.MakeContext(device);
    std::vector<int>& stack = state.Stack();
    if (stack.empty()) stack.push_back(device);
    stack.back() = device;
    return cudaSuccess;
  });
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  return Run("cudaThreadExchangeStreamCaptureMode", [&](FakeState&, cudaError_t) {
    std::swap(*mode, TheFakeThread().capture_mode);
    return cudaSuccess;
  });
}
