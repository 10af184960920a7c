#include "transforms/plan/row/pad_batch.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "transforms/plan/plan.h"
#include "transforms/plan/row/pad_row.h"
#include "transforms/resize/emit.h"
#include "transforms/resize/row_format.h"

namespace stoker {

namespace {

// Repeats a pixel.
class Filler {
 public:
  Filler(const uint8_t* pixel, size_t bytes) : pixel_bytes_(bytes), is_one_byte_(true) {
    for (size_t i = 0; i < sizeof(pixels_) / bytes; ++i) {
      std::memcpy(pixels_ + i * bytes, pixel, bytes);
    }
    for (size_t i = 1; i < bytes; ++i) is_one_byte_ &= pixel[i] == pixel[0];
  }

  // Fills [from, to), whole pixels.
  void Fill(uint8_t* from, const uint8_t* to) const {
    if (is_one_byte_) {
      std::memset(from, pixels_[0], static_cast<size_t>(to - from));
      return;
    }
    const size_t most = sizeof(pixels_) / pixel_bytes_ * pixel_bytes_;
    while (from != to) {
      const size_t bytes = std::min(most, static_cast<size_t>(to - from));
      std::memcpy(from, pixels_, bytes);
      from += bytes;
    }
  }

 private:
  const size_t pixel_bytes_;
  bool is_one_byte_;
  uint8_t pixels_[3072] = {};
};

// The lines of one image, plane after plane, from its own size to that of the row. A line that has
// the row's width is joined with those after it.
//
// A line moves by (to - from), which grows from line to line, and its padding ends where the next
// line begins. So lines that move to higher addresses, which are the last ones, are moved first,
// in descending order, and the others in ascending order: no line overwrites one that has yet to
// move.
class Lines {
 public:
  Lines(const BatchRows& rows, const uint8_t* image, ImageSize size, uint8_t* row, ImageSize whole)
      : image_(image), row_(row) {
    const size_t width = static_cast<size_t>(size.width), height = static_cast<size_t>(size.height);
    const size_t whole_width = static_cast<size_t>(whole.width);
    const bool joined = width == whole_width;
    of_plane_ = joined ? 1 : height;
    bytes_ = width * rows.pixel_bytes * (joined ? height : 1);
    whole_bytes_ = whole_width * rows.pixel_bytes * (joined ? height : 1);
    plane_bytes_ = whole_width * static_cast<size_t>(whole.height) * rows.pixel_bytes;
    count_ = rows.planes * of_plane_;
  }

  void Move(std::span<const Filler> fillers) const {
    size_t up = 0;  // the first line that moves to a higher address
    for (size_t end = count_; up < end;) {
      const size_t middle = up + (end - up) / 2;
      (To(middle) > From(middle) ? end : up) = To(middle) > From(middle) ? middle : middle + 1;
    }
    for (size_t line = count_; line-- > up;) MoveOne(line, fillers);
    for (size_t line = 0; line < up; ++line) MoveOne(line, fillers);
  }

 private:
  const uint8_t* From(size_t line) const { return image_ + line * bytes_; }
  uint8_t* To(size_t line) const {
    return row_ + line / of_plane_ * plane_bytes_ + line % of_plane_ * whole_bytes_;
  }
  void MoveOne(size_t line, std::span<const Filler> fillers) const {
    uint8_t* const to = To(line);
    if (to != From(line)) std::memmove(to, From(line), bytes_);
    fillers[line / of_plane_].Fill(to + bytes_, To(line + 1));
  }

  const uint8_t* const image_;
  uint8_t* const row_;
  size_t of_plane_, count_;                   // lines
  size_t bytes_, whole_bytes_, plane_bytes_;  // of a line, and of the row's lines and planes
};

BatchRows BatchRowsOf(const Plan& plan, void* data) {
  BatchRows rows{.data = static_cast<uint8_t*>(data), .reserved_bytes = plan.row_bytes()};
  rows.pixel_bytes = SizeOf(plan.dtype());
  if (plan.mask()) {
    std::memcpy(rows.padding.data(), &plan.mask()->fill, rows.pixel_bytes);
    return rows;
  }
  const auto channels = static_cast<size_t>(plan.channels());
  if (plan.layout() == Layout::kNchw) rows.planes = channels;
  rows.pixel_bytes *= channels / rows.planes;
  const RowFormat format = plan.PaddingFormat(rows.padding.data(), {1, 1});
  StorePixel(format, plan.padding().data(), rows.padding.data());
  return rows;
}

// Converts images that are staged. A row ends where its reserved memory does at the latest, which
// is before its own staged image and later ones.
void Convert(const Plan& plan, uint8_t* data, std::span<const int32_t> sizes, ImageSize whole) {
  const bool planar = plan.layout() == Layout::kNchw || plan.is_gray();
  const size_t row_bytes = BytesOf(plan.dtype(), plan.row_shape(whole));
  for (size_t row = 0; row < sizes.size() / 2; ++row) {
    const ImageSize size{sizes[2 * row + 1], sizes[2 * row]};
    const uint8_t* const staged = data + (row + 1) * plan.row_bytes() - plan.staged_bytes();
    uint8_t* const to = data + row * row_bytes;
    const ptrdiff_t stride = planar ? size.width : ptrdiff_t{3} * size.width;
    const ptrdiff_t plane = planar ? ptrdiff_t{size.width} * size.height : 0;
    EmitRows({staged, stride, plane, 3, size.height, size.width},
             RowFormat(plan.FinishedTo(to, whole), whole), to);
    PadRow(size, plan.padding(), plan.PaddingFormat(to, whole), whole, to);
  }
  FlushEmitted();
}

}  // namespace

ImageSize LargestOf(std::span<const int32_t> sizes, uint32_t multiple) {
  ImageSize most;
  for (size_t i = 0; i < sizes.size(); i += 2) {
    most = {std::max(most.width, sizes[i + 1]), std::max(most.height, sizes[i])};
  }
  const auto round_up = [multiple = static_cast<int>(multiple)](int side) {
    return (side + multiple - 1) / multiple * multiple;
  };
  return {round_up(most.width), round_up(most.height)};
}

void FinishBatch(const Plan& plan, void* data, std::span<const int32_t> sizes, ImageSize whole) {
  if (plan.staged_bytes() == 0) return PadBatch(BatchRowsOf(plan, data), sizes, whole);
  Convert(plan, static_cast<uint8_t*>(data), sizes, whole);
}

// Rows move to lower addresses: none overwrites a later image.
void PadBatch(const BatchRows& rows, std::span<const int32_t> sizes, ImageSize whole) {
  std::vector<Filler> fillers;
  fillers.reserve(rows.planes);
  for (size_t plane = 0; plane < rows.planes; ++plane) {
    fillers.emplace_back(rows.padding.data() + plane * rows.pixel_bytes, rows.pixel_bytes);
  }
  const size_t row_bytes = rows.planes * rows.pixel_bytes * static_cast<size_t>(whole.width) *
                           static_cast<size_t>(whole.height);
  for (size_t row = 0; row < sizes.size() / 2; ++row) {
    const ImageSize size{sizes[2 * row + 1], sizes[2 * row]};
    Lines(rows, rows.data + row * rows.reserved_bytes, size, rows.data + row * row_bytes, whole)
        .Move(fillers);
  }
}

void PadBatchPlain(const BatchRows& rows, std::span<const int32_t> sizes, ImageSize whole) {
  std::vector<uint8_t> made;
  for (size_t row = 0; row < sizes.size() / 2; ++row) {
    const uint8_t* from = rows.data + row * rows.reserved_bytes;
    for (size_t plane = 0; plane < rows.planes; ++plane) {
      for (int y = 0; y < whole.height; ++y) {
        for (int x = 0; x < whole.width; ++x) {
          const bool inside = y < sizes[2 * row] && x < sizes[2 * row + 1];
          const uint8_t* const pixel =
              inside ? from : rows.padding.data() + plane * rows.pixel_bytes;
          made.insert(made.end(), pixel, pixel + rows.pixel_bytes);
          if (inside) from += rows.pixel_bytes;
        }
      }
    }
  }
  std::ranges::copy(made, rows.data);
}

}  // namespace stoker
