#include "transforms/plan/row/pad_row.h"

#include <algorithm>
#include <cstddef>

#include "transforms/resize/emit.h"

namespace stoker {

namespace {

// This many pixels are filled at once in a pixel row. Each piece is aligned for streaming if the
// first one is.
constexpr int kPiece = 256;

// A line of pixels of one colour, in the order of a layout.
class FilledLine {
 public:
  FilledLine(const Fill& fill, Layout layout) : together_(layout == Layout::kNhwc) {
    for (size_t x = 0; x < kPiece; ++x) {
      for (size_t c = 0; c < 3; ++c) values_[together_ ? 3 * x + c : c * kPiece + x] = fill[c];
    }
  }

  // `box`: a part of the row; may be empty.
  void Emit(const Rect& box, const RowFormat& format, uint8_t* row) const {
    if (box.height == 0) return;
    for (int x = 0; x < box.width; x += kPiece) {
      const int pixels = std::min(kPiece, box.width - x);
      EmitRows({values_, 0, together_ ? 0 : kPiece, 3, box.height, pixels}, format,
               row + box.y * format.down + (box.x + x) * format.along);
    }
  }

 private:
  const bool together_;
  uint8_t values_[3 * kPiece + kEmitOverread] = {};
};

}  // namespace

void FillAround(const Rect& image, const Fill& fill, const RowFormat& format, ImageSize whole,
                uint8_t* row) {
  if (image.size() == whole) return;
  const FilledLine line(fill, format.layout);
  const int right = image.x + image.width, bottom = image.y + image.height;
  line.Emit({0, 0, whole.width, image.y}, format, row);
  line.Emit({0, image.y, image.x, image.height}, format, row);
  line.Emit({right, image.y, whole.width - right, image.height}, format, row);
  line.Emit({0, bottom, whole.width, whole.height - bottom}, format, row);
}

void PadRow(ImageSize image, const Fill& fill, const RowFormat& format, ImageSize whole,
            uint8_t* row) {
  FillAround({0, 0, image.width, image.height}, fill, format, whole, row);
}

}  // namespace stoker
