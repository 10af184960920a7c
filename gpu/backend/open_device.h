// Opens a device of each kind; Device::Open chooses among them.
#pragma once

#include <memory>

#include "gpu/backend/device.h"
#include "gpu/backend/host_streams.h"

namespace stoker {

// Makes the host device. `before` is called before each piece of work of its streams. The null
// handle and CUDA's 1 and 2 are one stream of the device itself. SynchronizeAll waits for its own
// streams; Pin does nothing.
std::shared_ptr<Device> MakeHostDevice(BeforeWork before = {});

// Opens a CUDA device as Device::Open does. Defined in device_cuda.cc or device_without_cuda.cc.
Result<std::shared_ptr<Device>> OpenCudaDevice(int ordinal);

}  // namespace stoker
