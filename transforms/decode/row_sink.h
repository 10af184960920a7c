// RowSink: the seam between a decoder and what follows it. Decoders push a region's rows from top
// to bottom, a few at a time, into memory that the sink provides; so neither side ever holds the
// whole region, and a decoder may work in rows, in MCU rows, interleaved or on planes.
#pragma once

#include "core/image.h"
#include "core/result.h"

namespace stoker {

// What a decoder will deliver.
struct DecodedRegion {
  PixelLayout layout = PixelLayout::kInterleaved;
  Rect covered;  // in the stored image: contains the region asked for; its rows are exactly those
                 // asked for, its columns may be more (a decoder works in blocks)
};

// Calls come in the order Begin, (Reserve, Commit)*. After all `covered.height` rows have been
// committed the sink is complete; a decoder that fails stops early and the sink is begun anew.
class RowSink {
 public:
  virtual ~RowSink() = default;

  // ResourceExhausted when the sink cannot have the memory it needs.
  virtual Status Begin(const DecodedRegion& region) = 0;

  // Room for the next rows: the view is covered.width wide and between 1 and `rows` high, and each
  // of its rows may be written up to kBufferPadding bytes past its end. Valid until Commit.
  virtual MutableImageView Reserve(int rows) = 0;

  // The first `rows` of what was reserved are written. Does not fail and does not throw.
  virtual void Commit(int rows) = 0;
};

}  // namespace stoker
