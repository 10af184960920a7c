// RowSink: the interface between a decoder and the next stage. Decoders push a region's rows from
// top to bottom, a few at a time, into memory that the sink provides; so neither side holds the
// whole region, and a decoder may work in rows, in MCU rows, interleaved or on planes.
#pragma once

#include <cstddef>

#include "core/batch/image.h"
#include "core/result/result.h"

namespace stoker {

// Sinks offset their rows by this many bytes from a multiple of 64. libjpeg-turbo's SIMD writes
// aligned interleaved rows past the caches (non-temporal stores in jdcolext), which made resampling
// of photographs three times slower. Rows that are not even 16-byte aligned go through the caches.
constexpr size_t RowOffset(PixelLayout layout) {
  return layout == PixelLayout::kInterleaved ? 8 : 0;
}

// Describes what a decoder will deliver.
struct DecodedRegion {
  PixelLayout layout = PixelLayout::kInterleaved;
  Rect covered;  // in the stored image: contains the requested region; its rows are exactly the
                 // requested ones, its columns may be more (a decoder works in blocks)
};

// Calls come in the order Begin, (Reserve, Commit)*. After all `covered.height` rows have been
// committed the sink has what it needs; a decoder that fails stops early, and Begin is called
// again.
class RowSink {
 public:
  virtual ~RowSink() = default;

  // The layout that rows of colours should have: kPlanar, which fast decoders deliver, while others
  // deliver kInterleaved; kInterleaved; or kGray, the luma alone: that of a YCbCr JPEG as it is
  // stored, and of all others Pillow's convert("L") of RGB. Rows without colours are kGray.
  virtual PixelLayout wants() const { return PixelLayout::kPlanar; }

  // ResourceExhausted if the sink cannot get the memory it needs.
  virtual Status Begin(const DecodedRegion& region) = 0;

  // Returns memory for the next rows: the view is covered.width wide and between 1 and `rows` high,
  // and each of its rows may be written up to kBufferPadding bytes past its end. Valid until
  // Commit.
  virtual MutableImageView Reserve(int rows) = 0;

  // The first `rows` of the reserved rows are written. Does not fail or throw.
  virtual void Commit(int rows) = 0;
};

}  // namespace stoker
