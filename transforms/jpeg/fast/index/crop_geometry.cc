#include "transforms/jpeg/fast/index/crop_geometry.h"

#include <algorithm>

#include "core/numbers/divide_up.h"

namespace stoker::jpeg {

namespace {

// The units [first, last] of `size` pixels each that contain the pixels [from, from + count). With
// `halved` chroma, the units of the previous and the next chroma sample are included.
struct Span {
  int begin, end;
};
Span Units(int from, int count, int size, bool halved, int chroma_count) {
  int first = from, last = from + count - 1;
  if (halved) {
    first = std::max(first / 2 - 1, 0) * 2;
    last = std::min(last / 2 + 1, chroma_count - 1) * 2;
  }
  return {first / size, last / size + 1};
}

// Returns the number of rows of MCUs that libjpeg-turbo parses until it has delivered row `last`.
// libjpeg-turbo handles as many rows of MCUs together as the first component has rows of blocks,
// even if that is the only component; and if upsampling uses the rows above and below, it needs the
// next MCU rows for the last two pixel rows.
int ParsedRows(const FrameHeader& header, int last, const CropGeometry& g) {
  const int together = header.components == 1 ? header.component[0].rows : 1;
  const bool next = g.tall && last % g.mcu_height >= g.mcu_height - 2;
  const int rows = (last / (g.mcu_height * together) + 1) * together + (next ? 1 : 0);
  return std::min(rows, g.mcu_rows);
}

// libjpeg-turbo takes larger blocks of chroma samples, rather than upsampling them, if both sides
// of a block can be larger.
bool TakesLargerChroma(const FrameHeader& header, Reduction reduction) {
  return reduction > 1 && header.mcu_columns() == 2 && header.mcu_rows() == 2;
}

}  // namespace

CropGeometry::CropGeometry(const FrameHeader& header, const Rect& r, Reduction reduction)
    : region(r),
      gray(header.components == 1),
      luma_side(8 / reduction),
      chroma_side(TakesLargerChroma(header, reduction) ? 2 * luma_side : luma_side),
      wide(header.mcu_columns() == 2 && chroma_side == luma_side),
      tall(header.mcu_rows() == 2 && chroma_side == luma_side),
      mcu_width(luma_side * header.mcu_columns()),
      mcu_height(luma_side * header.mcu_rows()),
      mcus_across(DivideUp(header.size.width, 8 * header.mcu_columns())),
      mcu_rows(DivideUp(header.size.height, 8 * header.mcu_rows())),
      chroma_columns(DivideUp(Reduced(header.size, reduction).width, wide ? 2 : 1)),
      chroma_height(DivideUp(Reduced(header.size, reduction).height, tall ? 2 : 1)) {
  const Span columns = Units(r.x, r.width, mcu_width, wide, chroma_columns);
  const Span rows = Units(r.y, r.height, mcu_height, tall, chroma_height);
  left = columns.begin;
  right = columns.end;
  top = rows.begin;
  bottom = rows.end;
  parsed_rows = std::max(ParsedRows(header, r.y + r.height - 1, *this), bottom);
}

}  // namespace stoker::jpeg
