#include "gpu/backend/cuda_context.h"

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "core/result/try.h"
#include "gpu/backend/cuda_calls.h"

namespace stoker {

namespace {

// Functions of the driver in CUDA 12.0's versions, the last one in 12.5's. They are looked up
// through the runtime, which has loaded the driver: linking to it would keep stoker from running
// without one.
using GetDevice = CUresult (*)(CUdevice*, int);
using RetainContext = CUresult (*)(CUcontext*, CUdevice);
using PushContext = CUresult (*)(CUcontext);
using PopContext = CUresult (*)(CUcontext*);
using RecordContext = CUresult (*)(CUcontext, CUevent);

template <typename Function>
Status Find(const char* name, int version, const std::string& device, Function& found) {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult how = cudaDriverEntryPointSuccess;
  const cudaError_t error =
      cudaGetDriverEntryPointByVersion(name, &entry, version, cudaEnableDefault, &how);
  TRY(CudaStatus(error, "cudaGetDriverEntryPointByVersion", device));
  if (how != cudaDriverEntryPointSuccess || entry == nullptr) {
    return Error{.code = Code::kUnavailable,
                 .cause = std::string("the NVIDIA driver has no ") + name};
  }
  found = reinterpret_cast<Function>(entry);
  return {};
}

}  // namespace

Result<CudaContext> CudaContext::Join(int ordinal, const std::string& device) {
  GetDevice get = nullptr;
  RetainContext retain = nullptr;
  PushContext push = nullptr;
  PopContext pop = nullptr;
  for (const Status& status : {Find("cuDeviceGet", 12000, device, get),
                               Find("cuDevicePrimaryCtxRetain", 12000, device, retain),
                               Find("cuCtxPushCurrent", 12000, device, push),
                               Find("cuCtxPopCurrent", 12000, device, pop)}) {
    if (!status) return status.error();
  }
  CUdevice number = 0;
  if (Status status = CudaStatus(get(&number, ordinal), "cuDeviceGet", device); !status) {
    return status.error();
  }
  CUcontext context = nullptr;
  if (Status status = CudaStatus(retain(&context, number), "cuDevicePrimaryCtxRetain", device);
      !status) {
    return status.error();
  }
  CudaContext joined;
  joined.context_ = context;
  joined.push_ = reinterpret_cast<Entry>(push);
  joined.pop_ = reinterpret_cast<Entry>(pop);
  RecordContext record = nullptr;
  if (Find("cuCtxRecordEvent", 12050, device, record).ok()) {
    joined.record_ = reinterpret_cast<Entry>(record);
  }
  return joined;
}

int CudaContext::Record(void* event) const {
  return reinterpret_cast<RecordContext>(record_)(static_cast<CUcontext>(context_),
                                                  static_cast<CUevent>(event));
}

CudaContext::Current::Current(const CudaContext& context)
    : context_(context),
      error_(
          reinterpret_cast<PushContext>(context.push_)(static_cast<CUcontext>(context.context_))) {
  if (error_ != 0) return;
  // By default a thread may not make calls that might disturb a capture on any thread. These calls
  // concern only streams of our own.
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  call_ = "cudaThreadExchangeStreamCaptureMode";
  error_ = cudaThreadExchangeStreamCaptureMode(&mode);
  capture_mode_ = mode;
  if (error_ != 0) {
    CUcontext mine = nullptr;
    (void)reinterpret_cast<PopContext>(context_.pop_)(&mine);
  }
}

CudaContext::Current::~Current() {
  if (error_ != 0) return;
  auto mode = static_cast<cudaStreamCaptureMode>(capture_mode_);
  (void)cudaThreadExchangeStreamCaptureMode(&mode);
  CUcontext mine = nullptr;
  (void)reinterpret_cast<PopContext>(context_.pop_)(&mine);
}

}  // namespace stoker
