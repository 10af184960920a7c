// Looks for CUDA, for `stoker doctor`. Loads the driver; creates no context.
#include <cuda_runtime_api.h>

#include "gpu/backend/cuda_calls.h"
#include "gpu/backend/device.h"
#include "gpu/backend/pci_link.h"

namespace stoker {

namespace {

// Properties of a device that cannot be read stay unknown.
CudaReport::DeviceInfo Describe(int ordinal) {
  CudaReport::DeviceInfo found;
  found.ordinal = ordinal;
  cudaDeviceProp properties;
  if (cudaGetDeviceProperties(&properties, ordinal) == cudaSuccess) {
    found.name = properties.name;
    found.memory_bytes = properties.totalGlobalMem;
    found.capability = properties.major * 10 + properties.minor;
  }
  char bus[32] = "";
  if (cudaDeviceGetPCIBusId(bus, sizeof bus, ordinal) == cudaSuccess) {
    const PciLink link = LinkOf(bus);
    found.bus = bus;
    found.link_gb_s = link.gb_s;
    found.best_link_gb_s = link.best_gb_s;
    found.numa_node = link.numa_node;
  }
  (void)cudaGetLastError();
  return found;
}

}  // namespace

CudaReport LookForCuda() {
  CudaReport report;
  report.built = true;
  report.runtime = CudaBuiltWith();
  report.min_driver = MinCudaOfDriver();
  report.driver = CudaOfDriver();
  const Result<int> count = CountCudaDevices();
  if (!count) {
    report.why_not = count.error().Message();
    return report;
  }
  for (int ordinal = 0; ordinal < *count; ++ordinal) report.devices.push_back(Describe(ordinal));
  return report;
}

}  // namespace stoker
