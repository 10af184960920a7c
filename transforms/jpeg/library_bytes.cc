#include "transforms/jpeg/library_bytes.h"

#include <cstddef>

namespace stoker::jpeg {
namespace {

constexpr uint64_t kBlockBytes = 128;  // 64 coefficients
constexpr uint64_t kRowAlignment = 64;

uint64_t RoundUp(uint64_t value, uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

uint64_t RowBytes(uint64_t samples) { return RoundUp(samples, kRowAlignment); }

}  // namespace

uint64_t CoefficientBytes(const Frame& frame) {
  if (!frame.several_scans) return 0;
  uint64_t blocks = 0;
  for (size_t i = 0; i < static_cast<size_t>(frame.components); ++i) {
    const Frame::Component& c = frame.component[i];
    blocks += RoundUp(c.block_columns, static_cast<uint64_t>(c.columns)) *
              RoundUp(c.block_rows, static_cast<uint64_t>(c.rows));
  }
  return blocks * kBlockBytes;
}

// Follows libjpeg-turbo 2.1.5. For each component, jdmainct.c keeps ten groups of rows, one row or
// more each, with a list of them and of half as many again; jdsample.c keeps as many rows of the
// full width as a group has, and once more if an image is cropped; jdcoefct.c keeps a list of rows
// of blocks. The fixed part is tables (jdcolor.c, jdhuff.c, jdarith.c: 16 KiB of statistics), the
// coefficients of one MCU, and partly used pools (jmemmgr.c); stoker adds the rows of a CMYK image
// (libjpeg.cc).
uint64_t LibraryBytes(const Frame& frame) {
  constexpr uint64_t kFixed = 80 << 10, kGroups = 10, kLists = 3 * 8 * 14, kCmykRows = 16;
  const uint64_t full = RowBytes(
      RoundUp(static_cast<uint64_t>(frame.width), static_cast<uint64_t>(frame.max_columns)));
  uint64_t bytes = kFixed + CoefficientBytes(frame);
  for (size_t i = 0; i < static_cast<size_t>(frame.components); ++i) {
    const Frame::Component& c = frame.component[i];
    const auto rows = static_cast<uint64_t>(c.rows);
    bytes += rows * (kGroups * RowBytes(8 * c.block_columns) + kLists);
    bytes += 2 * static_cast<uint64_t>(frame.max_rows) * full;
    if (frame.several_scans) bytes += 2 * 8 * RoundUp(c.block_rows, rows);
  }
  if (frame.components == 4) bytes += kCmykRows * RowBytes(4 * static_cast<uint64_t>(frame.width));
  return bytes;
}

}  // namespace stoker::jpeg
