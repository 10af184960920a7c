// Measures small copies while large ones are made, which are whole or in pieces.
#pragma once

#include <memory>

#include "core/result/result.h"
#include "gpu/backend/device.h"

namespace stoker {

// Prints a JSON object for each way of making the large copies, to the device, one after the other:
//
//   large_mib, piece_mib   their size, and that of their pieces; equal: whole. 0: there are none
//   turns                  whether other copies get a turn between pieces
//   (gpu/staging/piece_copier.h) large_gb_s             their rate to_device_us, to_host_us from
//   issuing a copy of 4 KiB on another stream, in either to_device_most_us, to_host_most_us
//   direction, to its end: the median and the longest
Status MeasureSmallCopies(const std::shared_ptr<Device>& device, bool quick);

}  // namespace stoker
