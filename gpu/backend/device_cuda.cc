// The CUDA device. Nothing here runs, and no driver is loaded, before one is opened.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <utility>

#include "core/result/try.h"
#include "gpu/backend/cuda_calls.h"
#include "gpu/backend/cuda_context.h"
#include "gpu/backend/occupy_cuda.h"
#include "gpu/backend/open_device.h"
#include "gpu/backend/own_process.h"
#include "gpu/backend/pci_link.h"
#include "gpu/crops/decode_crops_cuda.h"
#include "gpu/ops/deferred_ops_cuda.h"

namespace stoker {

namespace {

cudaStream_t Of(DeviceStream stream) { return static_cast<cudaStream_t>(stream.handle); }
cudaEvent_t Of(DeviceEvent event) { return static_cast<cudaEvent_t>(event.handle); }

// JAX's default share is 75% (docs.jax.dev, GPU memory allocation); TensorFlow "maps nearly all of
// the GPU memory of all GPUs" (tensorflow.org, Use a GPU).
constexpr const char* kPreallocation =
    "If JAX or TensorFlow uses this GPU, it has taken most of its memory in advance: set "
    "XLA_PYTHON_CLIENT_PREALLOCATE=false or XLA_PYTHON_CLIENT_MEM_FRACTION, or "
    "TF_FORCE_GPU_ALLOW_GROWTH=true, before it starts";

class CudaDevice final : public Device {
 public:
  CudaDevice(DeviceName name, CudaContext context, int numa_node)
      : name_(name), text_(name.ToString()), context_(context), numa_node_(numa_node) {}

  // Loaded now, because a kernel that is loaded at its first launch may wait for all work of the
  // device.
  Status Load() {
    TRY(Do("LoadDeferredOps", [] { return LoadDeferredOps(); }));
    return Do("LoadDecodeCrops", [] { return LoadDecodeCrops(); });
  }

  DeviceName name() const override { return name_; }
  int numa_node() const override { return numa_node_; }

  Status Pin(void* data, size_t bytes) override {
    return WithBytes(bytes, Do("cudaHostRegister", [&] {
                       return cudaHostRegister(data, bytes, cudaHostRegisterPortable);
                     }));
  }
  void Unpin(void* data) override {
    Release([&] { return cudaHostUnregister(data); });
  }

  Result<void*> AllocatePinned(size_t bytes) override {
    void* data = nullptr;
    TRY(WithBytes(bytes, Do("cudaHostAlloc",
                            [&] { return cudaHostAlloc(&data, bytes, cudaHostAllocPortable); })));
    return data;
  }
  void FreePinned(void* data) override {
    Release([&] { return cudaFreeHost(data); });
  }

  Result<void*> Allocate(size_t bytes) override {
    void* data = nullptr;
    Status status = WithBytes(bytes, Do("cudaMalloc", [&] {
                                // cudaMalloc returns a null pointer for 0 bytes.
                                return cudaMalloc(&data, std::max<size_t>(bytes, 1));
                              }));
    if (status.ok()) return data;
    Error error = std::move(status).error();
    if (error.code == Code::kResourceExhausted) error.advice = kPreallocation;
    return error;
  }
  void Free(void* data) override {
    Release([&] { return cudaFree(data); });
  }

  Result<DeviceStream> MakeStream(StreamPriority priority) override {
    cudaStream_t stream = nullptr;
    int lowest = 0, highest = 0;  // 0 is the normal priority
    TRY(Do("cudaDeviceGetStreamPriorityRange",
           [&] { return cudaDeviceGetStreamPriorityRange(&lowest, &highest); }));
    TRY(Do("cudaStreamCreateWithPriority", [&] {
      return cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking,
                                          priority == StreamPriority::kHigh ? highest : 0);
    }));
    return DeviceStream{stream};
  }
  void Destroy(DeviceStream stream) override {
    Release([&] { return cudaStreamDestroy(Of(stream)); });
  }

  Result<DeviceEvent> MakeEvent(bool timed) override {
    cudaEvent_t event = nullptr;
    // Waiting threads sleep: the cores have other work.
    const unsigned flags = cudaEventBlockingSync | (timed ? 0 : cudaEventDisableTiming);
    TRY(Do("cudaEventCreateWithFlags", [&] { return cudaEventCreateWithFlags(&event, flags); }));
    return DeviceEvent{event};
  }
  void Destroy(DeviceEvent event) override {
    Release([&] { return cudaEventDestroy(Of(event)); });
  }

  Status Record(DeviceEvent event, DeviceStream stream) override {
    return Outside("cudaEventRecord", stream,
                   [&] { return cudaEventRecord(Of(event), Of(stream)); });
  }
  Status RecordAll(DeviceEvent event) override {
    if (context_.cannot_record()) return SynchronizeAll();  // then the event is done
    return Do("cuCtxRecordEvent", [&] { return context_.Record(event.handle); });
  }
  Result<bool> IsCapturing(DeviceStream stream) override {
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    TRY(Do("cudaStreamIsCapturing", [&] {
      const cudaError_t error = cudaStreamIsCapturing(Of(stream), &capture);
      if (error != cudaErrorStreamCaptureImplicit) return error;
      capture = cudaStreamCaptureStatusActive;  // of a stream that the legacy one is ordered with
      (void)cudaGetLastError();
      return cudaSuccess;
    }));
    return capture != cudaStreamCaptureStatusNone;
  }
  Status Wait(DeviceStream stream, DeviceEvent event) override {
    return Outside("cudaStreamWaitEvent", stream,
                   [&] { return cudaStreamWaitEvent(Of(stream), Of(event), 0); });
  }
  Result<bool> IsDone(DeviceEvent event) override {
    bool done = true;
    TRY(Do("cudaEventQuery", [&] {
      const cudaError_t error = cudaEventQuery(Of(event));
      if (error != cudaErrorNotReady) return error;
      done = false;
      (void)cudaGetLastError();
      return cudaSuccess;
    }));
    return done;
  }
  Status Synchronize(DeviceEvent event) override {
    return Do("cudaEventSynchronize", [&] { return cudaEventSynchronize(Of(event)); });
  }
  Status SynchronizeAll() override {
    return Do("cudaDeviceSynchronize", [] { return cudaDeviceSynchronize(); });
  }

  Result<uint64_t> Elapsed(DeviceEvent begin, DeviceEvent end) override {
    float milliseconds = 0;
    TRY(Do("cudaEventElapsedTime",
           [&] { return cudaEventElapsedTime(&milliseconds, Of(begin), Of(end)); }));
    return static_cast<uint64_t>(double{milliseconds} * 1e6);
  }

  Status Copy(void* to, const void* from, size_t bytes, DeviceStream stream) override {
    if (bytes == 0) return {};
    return Do("cudaMemcpyAsync",
              [&] { return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, Of(stream)); });
  }
  Status ApplyDeferred(const DeferredOpsJob& job, DeviceStream stream) override {
    return Do("the kernel DeferredOps", [&] { return LaunchDeferredOps(job, stream.handle); });
  }
  Status DecodeCrops(const decode::CropBatch& batch, DeviceStream stream) override {
    return Do("the kernels of DecodeCrops",
              [&] { return LaunchDecodeCrops(batch, stream.handle); });
  }
  Status Occupy(uint64_t nanoseconds, DeviceStream stream) override {
    return Do("the kernel Occupy", [&] { return LaunchOccupy(nanoseconds, stream.handle); });
  }

 private:
  template <typename Call>
  Status Do(const char* what, const Call& call) {
    TRY(process_.Check(text_));
    const CudaContext::Current current(context_);
    if (current.error() != 0) return CudaStatus(current.error(), current.call(), text_);
    return CudaStatus(call(), what, text_);
  }

  // Calls on a stream that is being captured into a graph are refused: an event of the capture
  // would draw its waiters into it, and another stream's event would invalidate it.
  template <typename Call>
  Status Outside(const char* what, DeviceStream stream, const Call& call) {
    Result<bool> capture = IsCapturing(stream);
    if (!capture) return capture.error();
    return Do(what, [&] { return *capture ? cudaErrorStreamCaptureIsolation : call(); });
  }

  // For releases, which cannot fail: when the process ends, CUDA's runtime may have been unloaded
  // before, and the memory with it.
  template <typename Call>
  void Release(const Call& call) {
    (void)Do("", call);
  }

  static Status WithBytes(size_t bytes, Status status) {
    if (status) return status;
    Error error = std::move(status).error();
    error.cause += ", for " + std::to_string(bytes) + " bytes";
    return error;
  }

  const DeviceName name_;
  const std::string text_;
  const CudaContext context_;
  const int numa_node_;
  const OwnProcess process_;
};

int NumaNodeOf(int ordinal) {
  char bus[32] = "";
  if (cudaDeviceGetPCIBusId(bus, sizeof bus, ordinal) == cudaSuccess) return LinkOf(bus).numa_node;
  (void)cudaGetLastError();
  return -1;
}

}  // namespace

Result<std::shared_ptr<Device>> OpenCudaDevice(int ordinal) {
  const DeviceName name{DeviceName::Kind::kCuda, ordinal};
  const Result<int> count = CountCudaDevices();
  if (!count) {
    Error error = count.error();
    error.cause = "no device " + name.ToString() + ": " + error.cause;
    return error;
  }
  if (ordinal < 0 || ordinal >= *count) {
    return Error{.code = Code::kFailedPrecondition,
                 .cause = "no device " + name.ToString() + ": CUDA has " + std::to_string(*count) +
                          (*count == 1 ? " device" : " devices"),
                 .advice = "Devices are numbered from 0, and CUDA_VISIBLE_DEVICES may hide some"};
  }
  ASSIGN_OR_RETURN(CudaContext context, CudaContext::Join(ordinal, name.ToString()));
  auto device = std::make_shared<CudaDevice>(name, context, NumaNodeOf(ordinal));
  TRY(device->Load());
  return std::shared_ptr<Device>(std::move(device));
}

}  // namespace stoker
