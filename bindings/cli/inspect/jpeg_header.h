// Reads the header of a JPEG file (ITU-T T.81, annex B), up to its first scan; for examining a
// dataset without decoding it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "core/batch/image.h"
#include "core/result/result.h"
#include "transforms/decode/orientation.h"

namespace stoker {

struct JpegDescription {
  ImageSize size;  // as stored; both sides at least 1
  int precision = 8;
  int components = 0;                // 1 to 4
  std::array<uint8_t, 4> columns{};  // horizontal sampling factor of each, 1 to 4
  std::array<uint8_t, 4> rows{};     // vertical
  uint8_t frame = 0;                 // the SOF marker's second byte: 0xC0 baseline, …
  int adobe_transform = -1;          // of an Adobe segment: 0 RGB or CMYK, 1 YCbCr, 2 YCCK
  Orientation orientation = Orientation::kNormal;
  int restart_interval = 0;  // MCUs; 0 means no restart markers

  bool progressive() const { return frame == 0xC2 || frame == 0xCA; }
  bool arithmetic() const { return frame >= 0xC9; }
  bool lossless() const { return (frame & 3) == 3; }
  // "gray", "4:4:4", "4:2:0", "4:2:2", "4:4:0", …; "CMYK", "YCCK"; "2x1,1x2,1x1" for other formats.
  std::string ChromaName() const;
};

// Returns up to `size` bytes of the file from `offset` on; fewer only at its end. They are valid
// until the next call.
using ReadAt = std::function<Result<std::span<const uint8_t>>(uint64_t offset, size_t size)>;

// Reads from bytes in memory.
ReadAt InMemory(std::span<const uint8_t> bytes);

// Reads segments up to the start of the first scan. DataLoss with the offset: not a JPEG, ended too
// early, an invalid frame, an unexpected marker. For any bytes, it only moves forward,
// requests each byte a few times at most, and gives up after 1 MiB that belong to no segment or 32
// MiB of header. Errors of `read` are passed on.
Result<JpegDescription> ReadJpegHeader(const ReadAt& read);

Result<JpegDescription> ReadJpegHeader(std::span<const uint8_t> bytes);

}  // namespace stoker
