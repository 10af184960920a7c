// Replaces device_cuda.cc in a build without CUDA.
#include "gpu/backend/open_device.h"

namespace stoker {

Result<std::shared_ptr<Device>> OpenCudaDevice(int ordinal) {
  const DeviceName name{DeviceName::Kind::kCuda, ordinal};
  return Error{.code = Code::kFailedPrecondition,
               .cause = "no device " + name.ToString() + ": stoker was built without CUDA",
               .advice = "Build it with the CUDA toolkit installed and -DSTOKER_CUDA=ON"};
}

CudaReport LookForCuda() {
  CudaReport report;
  report.why_not = "stoker was built without CUDA";
  return report;
}

}  // namespace stoker
