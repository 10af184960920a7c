// CheckHevcPicture: bounds what an HEVC stream (ITU-T H.265) makes libde265 allocate and decode;
// the file's `ispe` box may give another size.
#pragma once

#include <cstdint>
#include <span>

#include "core/batch/image.h"
#include "core/result/result.h"

namespace stoker::whole {

// Checks an image's hvcC box and its data, NAL units that follow their lengths of 4 bytes. Errors:
// DataLoss if they are damaged, or if a sequence parameter set says that the picture is larger than
// `size`, rounded up to whole blocks of 64 pixels; Unimplemented for more than cameras and encoders
// write, which is a picture without references to others (IDR) of 4 slices, and two parameter sets
// of each kind, at most: libde265 decodes the picture again for each slice, and sets up tables of
// its size for each parameter set. Takes any bytes.
Status CheckHevcPicture(std::span<const uint8_t> setup, std::span<const uint8_t> data,
                        ImageSize size);

}  // namespace stoker::whole
