// CUDA's runtime functions on the installed FakeCuda: memory, streams, events, work.
#include <cuda_runtime_api.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <thread>

#include "core/batch/deferred_ops.h"
#include "gpu/backend/occupy_cuda.h"
#include "gpu/crops/decode_crops.h"
#include "gpu/crops/decode_crops_cuda.h"
#include "gpu/ops/deferred_ops_cuda.h"
#include "tests/testing/devices/fake_cuda/fake_call.h"

namespace {

using stoker::testing::CheckCapture;
using stoker::testing::FakeState;
using stoker::testing::Run;
using stoker::testing::RunOnDevice;
using stoker::testing::RunOnStream;

// Waits for the work that the stream was given so far.
void Await(FakeState::Stream& stream) {
  stoker::HostEvent end;
  end.Record(*stream.thread);
  end.Synchronize();
}

}  // namespace

cudaError_t cudaMalloc(void** data, size_t bytes) {
  return RunOnDevice("cudaMalloc", [&](FakeState& state, int device, cudaError_t) {
    return state.Allocate(device, bytes, data);
  });
}

cudaError_t cudaFree(void* data) {
  return RunOnDevice("cudaFree", [&](FakeState& state, int, cudaError_t) {
    return data == nullptr ? cudaSuccess : state.Free(data);
  });
}

cudaError_t cudaHostRegister(void* data, size_t bytes, unsigned flags) {
  return RunOnDevice("cudaHostRegister", [&](FakeState& state, int, cudaError_t) {
    if (flags != cudaHostRegisterPortable) return state.Violate("pinned for one device only");
    return state.Pin(data, bytes);
  });
}

cudaError_t cudaHostUnregister(void* data) {
  return RunOnDevice("cudaHostUnregister",
                     [&](FakeState& state, int, cudaError_t) { return state.Unpin(data); });
}

cudaError_t cudaHostAlloc(void** data, size_t bytes, unsigned flags) {
  return RunOnDevice("cudaHostAlloc", [&](FakeState& state, int, cudaError_t) {
    if (flags != cudaHostAllocPortable) return state.Violate("pinned for one device only");
    return state.AllocatePinned(bytes, data);
  });
}

cudaError_t cudaFreeHost(void* data) {
  return RunOnDevice("cudaFreeHost",
                     [&](FakeState& state, int, cudaError_t) { return state.FreePinned(data); });
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return RunOnDevice("cudaDeviceGetStreamPriorityRange", [&](FakeState&, int, cudaError_t) {
    *least = 0;
    *greatest = -5;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  return RunOnDevice("cudaStreamCreateWithPriority",
                     [&](FakeState& state, int device, cudaError_t) {
                       if (flags != cudaStreamNonBlocking)
                         return state.Violate("a stream that blocks");
                       if (priority != 0 && priority != -5) return state.Violate("an odd priority");
                       return state.MakeStream(device, flags, stream);
                     });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return RunOnDevice("cudaStreamIsCapturing", [&](FakeState& state, int device, cudaError_t) {
    const std::shared_ptr<FakeState::Stream> found = state.FindStream(stream, device);
    return found == nullptr ? cudaErrorInvalidResourceHandle : state.CaptureStatus(*found, status);
  });
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return RunOnDevice("cudaStreamDestroy", [&](FakeState& state, int, cudaError_t) {
    return state.DestroyStream(stream);
  });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  return RunOnStream("cudaStreamWaitEvent", stream,
                     [&](FakeState& state, FakeState::Stream& held, cudaError_t) {
                       const std::shared_ptr<FakeState::Event> found = state.FindEvent(event);
                       if (found == nullptr) {
                         (void)state.Violate("cudaStreamWaitEvent for what is no event");
                         return cudaErrorInvalidResourceHandle;
                       }
                       found->event.HoldBack(*held.thread);
                       return cudaSuccess;
                     });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return RunOnDevice("cudaEventCreateWithFlags", [&](FakeState& state, int device, cudaError_t) {
    if ((flags & cudaEventBlockingSync) == 0) return state.Violate("one waits awake for an event");
    return state.MakeEvent(device, (flags & cudaEventDisableTiming) == 0, event);
  });
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return RunOnDevice("cudaEventDestroy",
                     [&](FakeState& state, int, cudaError_t) { return state.DestroyEvent(event); });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return RunOnStream("cudaEventRecord", stream,
                     [&](FakeState& state, FakeState::Stream& on, cudaError_t later) {
                       const std::shared_ptr<FakeState::Event> found = state.FindEvent(event);
                       if (found == nullptr || found->device != on.device) {
                         (void)state.Violate("cudaEventRecord of another device's event");
                         return cudaErrorInvalidResourceHandle;
                       }
                       if (later != cudaSuccess) state.Give(on, later, {});
                       found->event.Record(*on.thread);
                       return cudaSuccess;
                     });
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return RunOnDevice("cudaEventQuery", [&](FakeState& state, int, cudaError_t) {
    const std::shared_ptr<FakeState::Event> found = state.FindEvent(event);
    if (found == nullptr) {
      (void)state.Violate("cudaEventQuery of what is no event");
      return cudaErrorInvalidResourceHandle;
    }
    if (!found->event.Done()) return cudaErrorNotReady;
    return state.Lost(found->device);
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return RunOnDevice("cudaEventSynchronize", [&](FakeState& state, int, cudaError_t) {
    const std::shared_ptr<FakeState::Event> found = state.FindEvent(event);
    if (found == nullptr) {
      (void)state.Violate("cudaEventSynchronize of what is no event");
      return cudaErrorInvalidResourceHandle;
    }
    found->event.Synchronize();
    return state.Lost(found->device);
  });
}

cudaError_t cudaDeviceSynchronize() {
  return Run("cudaDeviceSynchronize", [&](FakeState& state, cudaError_t) {
    const cudaError_t error = CheckCapture(state, "cudaDeviceSynchronize");
    if (error != cudaSuccess) return error;
    // "Invalid to query the execution status of or synchronize a broader handle which encompasses
    // an active stream capture, such as a device or context handle" (programming guide, CUDA
    // graphs, prohibited and unhandled operations), and "when an invalid operation is attempted
    // during stream capture, any associated capture graphs are invalidated" (the same,
    // invalidation).
    if (state.InvalidateCaptures(state.Current())) return cudaErrorStreamCaptureUnsupported;
    state.AwaitStreams(state.Current());  // also of a lost device: what it was doing has ended then
    return state.Lost(state.Current());
  });
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  return RunOnDevice("cudaEventElapsedTime", [&](FakeState& state, int, cudaError_t) {
    const std::shared_ptr<FakeState::Event> from = state.FindEvent(begin),
                                            to = state.FindEvent(end);
    if (from == nullptr || to == nullptr || !from->timed || !to->timed) {
      return cudaErrorInvalidResourceHandle;
    }
    if (!from->event.Done() || !to->event.Done()) return cudaErrorNotReady;
    *milliseconds = static_cast<float>(
        static_cast<double>(to->event.passed_ns() - from->event.passed_ns()) / 1e6);
    return cudaSuccess;
  });
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  enum class MemoryKind { kDevice, kPinned, kPageable };
  return RunOnStream(
      "cudaMemcpyAsync", stream, [&](FakeState& state, FakeState::Stream& on, cudaError_t later) {
        FakeState* const machine = &state;
        const auto kind_of = [=, ordinal = on.device](const void* data) {
          if (machine->IsDeviceMemory(ordinal, data, bytes)) return MemoryKind::kDevice;
          return machine->IsPinned(data, bytes) ? MemoryKind::kPinned : MemoryKind::kPageable;
        };
        const MemoryKind source = kind_of(from), target = kind_of(to);
        if (source != MemoryKind::kDevice && target != MemoryKind::kDevice) {
          return state.Violate("a copy to or from what is not the device's memory");
        }
        for (const void* const data : {static_cast<const void*>(to), from}) {
          if (kind_of(data) != MemoryKind::kDevice && state.IsDeviceMemory(-1, data, 1)) {
            return state.Violate("a copy that leaves its memory, or is of another device's");
          }
        }
        state.Give(on, later, [=] {
          if (kind_of(from) != source || kind_of(to) != target) {
            return machine->Violate("memory was freed or unpinned before a copy was done");
          }
          std::memmove(to, from, bytes);
          return cudaSuccess;
        });
        if (source == MemoryKind::kPageable || target == MemoryKind::kPageable) Await(on);
        return cudaSuccess;
      });
}

namespace stoker {

// Host versions of the kernels in decode_crops_cuda.cu, deferred_ops_cuda.cu and occupy_cuda.cu.
int LoadDecodeCrops() {
  return RunOnDevice("LoadDecodeCrops", [](FakeState&, int, cudaError_t) { return cudaSuccess; });
}

int LaunchDecodeCrops(const decode::CropBatch& batch, void* stream) {
  return RunOnStream(
      "LaunchDecodeCrops", static_cast<cudaStream_t>(stream),
      [&](FakeState& state, FakeState::Stream& on, cudaError_t later) {
        if (on.device != state.Current()) return cudaErrorInvalidResourceHandle;
        FakeState* const machine = &state;
        const int device = on.device;
        // What the other pointers lead to has no size here.
        const auto holds = [=] {
          return machine->IsDeviceMemory(device, batch.crop_at, batch.rows * sizeof(uint64_t)) &&
                 machine->IsDeviceMemory(device, batch.to, batch.rows * batch.row_bytes);
        };
        if (!holds()) return state.Violate("a kernel on what is not the device's memory");
        state.Give(on, later, [=] {
          if (!holds()) return machine->Violate("device memory was freed before a kernel was done");
          DecodeCropsOnHost(batch);
          return cudaSuccess;
        });
        return cudaSuccess;
      });
}

int LoadDeferredOps() {
  return RunOnDevice("LoadDeferredOps", [](FakeState&, int, cudaError_t) { return cudaSuccess; });
}

int LaunchDeferredOps(const DeferredOpsJob& job, void* stream) {
  return RunOnStream(
      "LaunchDeferredOps", static_cast<cudaStream_t>(stream),
      [&](FakeState& state, FakeState::Stream& on, cudaError_t later) {
        if (on.device != state.Current()) return cudaErrorInvalidResourceHandle;
        FakeState* const machine = &state;
        const int device = on.device;
        const auto holds = [=] {
          const size_t values = static_cast<size_t>(job.rows) * job.height * job.width * 3;
          return machine->IsDeviceMemory(device, job.from, values) &&
                 machine->IsDeviceMemory(device, job.to, values * SizeOf(job.dtype)) &&
                 (job.work == nullptr ||
                  machine->IsDeviceMemory(device, job.work,
                                          job.rows * DeferredOpsBytes(job.boxes)));
        };
        if (!holds() || reinterpret_cast<uintptr_t>(job.to) % 16 != 0) {
          return state.Violate("a kernel on what is not the device's memory, or not aligned");
        }
        state.Give(on, later, [=] {
          if (!holds()) return machine->Violate("device memory was freed before a kernel was done");
          ApplyDeferredOnHost(job);
          return cudaSuccess;
        });
        return cudaSuccess;
      });
}

int LaunchOccupy(uint64_t nanoseconds, void* stream) {
  return RunOnStream("LaunchOccupy", static_cast<cudaStream_t>(stream),
                     [&](FakeState& state, FakeState::Stream& on, cudaError_t later) {
                       state.Give(on, later, [=] {
                         std::this_thread::sleep_for(std::chrono::nanoseconds(nanoseconds));
                         return cudaSuccess;
                       });
                       return cudaSuccess;
                     });
}

}  // namespace stoker
