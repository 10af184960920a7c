// Av1Frame: the size of the frame in an AV1 stream. dav1d allocates by it; the file's boxes may
// give another one.
#pragma once

#include <cstdint>
#include <span>

#include "core/result/result.h"

namespace stoker::whole {

struct Av1Frame {
  uint64_t most_side = 0;   // in pixels
  uint64_t half_bytes = 0;  // of a pixel of all planes: 2 for gray of 8 bits
};

// Reads the OBUs of an image item (AV1 specification, 5.3 to 5.5). Takes any bytes. Errors:
// DataLoss if they are damaged or have no sequence header; Unimplemented for several frames, and
// for frames whose header and tiles are OBUs of their own, of which dav1d could make several.
Result<Av1Frame> ReadAv1Frame(std::span<const uint8_t> data);

}  // namespace stoker::whole
