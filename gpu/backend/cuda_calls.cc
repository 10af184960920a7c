#include "gpu/backend/cuda_calls.h"

#include <cuda_runtime_api.h>

#include <cstdlib>

namespace stoker {

namespace {

std::string WordsOf(int error) {
  const auto code = static_cast<cudaError_t>(error);
  return std::string(cudaGetErrorString(code)) + " (" + cudaGetErrorName(code) + ")";
}

Code CodeOf(int error) {
  if (error == cudaErrorMemoryAllocation) return Code::kResourceExhausted;
  const bool gone = error == cudaErrorCudartUnloading || error == cudaErrorContextIsDestroyed;
  const bool capture =
      error >= cudaErrorStreamCaptureUnsupported && error <= cudaErrorStreamCaptureWrongThread;
  return gone || capture ? Code::kFailedPrecondition : Code::kUnavailable;
}

std::string VersionText(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

// Returns "CUDA 13.0, which is driver 580 or newer": drivers have version numbers of their own.
std::string NeededDriver() {
  std::string text = "CUDA " + VersionText(MinCudaOfDriver());
  switch (MinCudaOfDriver() / 1000) {
    case 12:
      return text + ", which is driver 525 or newer";
    case 13:
      return text + ", which is driver 580 or newer";
    default:
      return text + " or newer";
  }
}

Error DriverMissing() {
  const int driver = CudaOfDriver();
  Error error{.code = Code::kFailedPrecondition, .cause = "there is no NVIDIA driver"};
  if (driver > 0) {
    error.cause = "the NVIDIA driver is too old: it has CUDA " + VersionText(driver);
  }
  error.advice = "stoker was built with CUDA " + VersionText(CudaBuiltWith()) +
                 ": install a driver that has " + NeededDriver();
  return error;
}

Error NoDeviceError() {
  Error error{.code = Code::kFailedPrecondition, .cause = "the NVIDIA driver finds no device"};
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (visible == nullptr) {
    error.advice = "`nvidia-smi -L` lists the machine's devices; a container needs access to them";
  } else {
    error.cause += ", or CUDA_VISIBLE_DEVICES=\"" + std::string(visible) + "\" leaves none";
    error.advice = "`nvidia-smi -L` lists the machine's devices";
  }
  return error;
}

}  // namespace

Status CudaStatus(int error, const char* call, const std::string& device) {
  if (error == cudaSuccess) return {};
  (void)cudaGetLastError();  // otherwise a later launch would report it
  return Error{.code = CodeOf(error),
               .cause = std::string(call) + " on " + device + ": " + WordsOf(error)};
}

int CudaBuiltWith() { return CUDART_VERSION; }

int MinCudaOfDriver() { return CUDART_VERSION / 1000 * 1000; }

int CudaOfDriver() {
  int version = 0;
  if (cudaDriverGetVersion(&version) != cudaSuccess) (void)cudaGetLastError();
  return version;
}

Result<int> CountCudaDevices() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaSuccess && count > 0) return count;
  (void)cudaGetLastError();
  if (error == cudaErrorInsufficientDriver) return DriverMissing();
  if (error == cudaSuccess || error == cudaErrorNoDevice) return NoDeviceError();
  Error other{.code = Code::kFailedPrecondition,
              .cause = "CUDA cannot be used: cudaGetDeviceCount: " + WordsOf(error),
              .advice = "`nvidia-smi` says whether the driver works"};
  if (error == cudaErrorInitializationError) {
    other.advice =
        "A process that was forked from one which uses CUDA cannot use it: start it by spawn";
  }
  return other;
}

}  // namespace stoker
