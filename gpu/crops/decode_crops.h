// Decodes the crops of a batch on the CPU, by the templates that the kernels are made of: for the
// device "host", and for tests.
#pragma once

#include "core/batch/device_crop.h"

namespace stoker {

// Writes the row of each crop; the others stay as they are.
void DecodeCropsOnHost(const decode::CropBatch& batch);

}  // namespace stoker
