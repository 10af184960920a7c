#include "bindings/sheet/sheet.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>

#include "core/result/try.h"

namespace stoker {

namespace {

using Colour = std::array<uint8_t, 3>;

constexpr uint8_t kWhite = 255;

// PASCAL VOC's colour map. 255 is "void" there, and pale: pixels that are ignored in training
// differ from the background. Three bits of the value at a time give a bit each of R, G and B, from
// the highest one on, so that small values are far from each other.
constexpr Colour ColourOf(unsigned value) {
  Colour colour{};
  for (unsigned bit = 0x80; value != 0; bit >>= 1, value >>= 3) {
    for (size_t channel = 0; channel < 3; ++channel) {
      if ((value >> channel & 1) != 0)
        colour[channel] = static_cast<uint8_t>(colour[channel] | bit);
    }
  }
  return colour;
}

constexpr std::array<Colour, 256> kColours = [] {
  std::array<Colour, 256> colours{};
  for (unsigned value = 0; value < colours.size(); ++value) colours[value] = ColourOf(value);
  return colours;
}();

// Draws over `width` pixels.
template <typename Value>
void Blend(const Value* mask, int width, uint8_t* pixels) {
  for (int x = 0; x < width; ++x, pixels += 3) {
    if (mask[x] == 0) continue;
    const Colour& colour = kColours[ColourOfLabel(mask[x])];
    for (size_t channel = 0; channel < 3; ++channel) {
      pixels[channel] = static_cast<uint8_t>((pixels[channel] + colour[channel] + 1) / 2);
    }
  }
}

// Draws image `at` with its top left pixel at `to`; `stride`: bytes of a row of the sheet.
void DrawImage(const SheetRows& rows, int64_t at, uint8_t* to, ptrdiff_t stride) {
  const auto [width, height] = rows.size;
  const ptrdiff_t line = ptrdiff_t{at} * height;
  for (int y = 0; y < height; ++y, to += stride) {
    const ptrdiff_t first = (line + y) * width;
    std::copy_n(rows.images + first * 3, ptrdiff_t{width} * 3, to);
    if (rows.masks != nullptr) Blend(rows.masks + first, width, to);
    if (rows.masks_of_16_bits != nullptr) Blend(rows.masks_of_16_bits + first, width, to);
  }
}

// An image on the sheet.
struct Canvas {
  uint8_t* first;    // pixel
  ptrdiff_t stride;  // bytes of a row of the sheet
  ImageSize size;
};

// Fills the pixels [left, right) × [top, bottom) that are in the image.
void Fill(const Canvas& on, int64_t left, int64_t top, int64_t right, int64_t bottom,
          const Colour& colour) {
  left = std::max<int64_t>(left, 0);
  right = std::min<int64_t>(right, on.size.width);
  bottom = std::min<int64_t>(bottom, on.size.height);
  for (int64_t y = std::max<int64_t>(top, 0); y < bottom; ++y) {
    for (int64_t x = left; x < right; ++x) {
      std::ranges::copy(colour, on.first + y * on.stride + x * 3);
    }
  }
}

// Pixels of a line or a dot, which are wider in large images.
int64_t WidthOfLines(ImageSize size) {
  return std::max(1, std::min(size.width, size.height) / 150);
}

// Converts a coordinate to a whole number; what is far outside of any image stays there.
int64_t Whole(float coordinate) {
  constexpr float kFar = 1 << 20;
  return static_cast<int64_t>(std::floor(std::clamp(coordinate, -kFar, kFar)));
}

bool AreFinite(std::span<const float> numbers) {
  return std::ranges::all_of(numbers, [](float number) { return std::isfinite(number); });
}

// Returns left, top, right and bottom.
std::array<float, 4> CornersOf(const float* box, BoxFormat format) {
  std::array<float, 4> corners{box[0], box[1], box[2], box[3]};
  for (size_t axis = 0; axis < 2 && format != BoxFormat::kXyxy; ++axis) {
    if (format == BoxFormat::kCxcywh) corners[axis] -= box[axis + 2] / 2;
    corners[axis + 2] += corners[axis];
  }
  return corners;
}

void DrawBox(const Canvas& on, const std::array<float, 4>& box, const Colour& colour) {
  if (!AreFinite(box) || box[2] < box[0] || box[3] < box[1]) return;
  const int64_t wide = WidthOfLines(on.size);
  const int64_t left = Whole(box[0]), top = Whole(box[1]);
  const int64_t right = std::max(-Whole(-box[2]), left + 1);
  const int64_t bottom = std::max(-Whole(-box[3]), top + 1);
  Fill(on, left, top, right, std::min(top + wide, bottom), colour);
  Fill(on, left, std::max(bottom - wide, top), right, bottom, colour);
  Fill(on, left, top, std::min(left + wide, right), bottom, colour);
  Fill(on, std::max(right - wide, left), top, right, bottom, colour);
}

void DrawPoint(const Canvas& on, std::span<const float, 3> point, const Colour& colour) {
  if (!AreFinite(point) || point[2] == 0) return;
  const int64_t x = Whole(point[0]), y = Whole(point[1]), wide = WidthOfLines(on.size);
  Fill(on, x - wide, y - wide, x + wide + 1, y + wide + 1, colour);
}

// Draws the objects of image `at`.
void DrawObjects(const SheetObjects& objects, int64_t at, const Canvas& on) {
  if (objects.offsets.empty()) return;
  const auto row = static_cast<size_t>(at);
  for (int64_t i = objects.offsets[row]; i < objects.offsets[row + 1]; ++i) {
    const bool coloured = objects.labels != nullptr;
    const Colour colour =
        coloured ? kColours[ColourOfLabel(objects.labels[i])] : Colour{kWhite, kWhite, kWhite};
    if (objects.boxes != nullptr) {
      DrawBox(on, CornersOf(objects.boxes + i * 4, objects.format), colour);
    }
    if (objects.points == nullptr) continue;
    for (int64_t p = i * objects.points_each; p < (i + 1) * objects.points_each; ++p) {
      DrawPoint(on, std::span<const float, 3>(objects.points + p * 3, 3), colour);
    }
  }
}

Error Wrong(std::string cause, std::string advice = {}) {
  return {.code = Code::kInvalidArgument, .cause = std::move(cause), .advice = std::move(advice)};
}

}  // namespace

Result<ImageSize> SizeOfSheet(int64_t count, ImageSize image, int64_t columns) {
  if (count < 1 || count > kMaxSheetRows) {
    return Wrong("a sheet of " + std::to_string(count) + " images was asked for; it has 1 to " +
                 std::to_string(kMaxSheetRows));
  }
  if (image.width < 1 || image.height < 1) return Wrong("the images have no pixels");
  if (columns < 1 || columns > kMaxSheetRows) {
    return Wrong("a sheet of " + std::to_string(columns) + " columns was asked for; it has 1 to " +
                 std::to_string(kMaxSheetRows));
  }
  const int64_t across = std::min(columns, count);
  const int64_t down = (count + across - 1) / across;
  const int64_t width = across * (int64_t{image.width} + kSheetGap) - kSheetGap;
  const int64_t height = down * (int64_t{image.height} + kSheetGap) - kSheetGap;
  if (std::max(width, height) > kMaxSidePixels || width * height > kMaxSheetPixels) {
    return Wrong("the sheet would have " + std::to_string(width) + " × " + std::to_string(height) +
                     " pixels; it may have " + std::to_string(kMaxSheetPixels) +
                     " pixels, and sides of " + std::to_string(kMaxSidePixels),
                 "Show fewer or smaller images");
  }
  return ImageSize{static_cast<int>(width), static_cast<int>(height)};
}

Result<WholeImage> DrawSheet(const SheetRows& rows, int64_t columns) {
  WholeImage sheet;
  ASSIGN_OR_RETURN(sheet.size, SizeOfSheet(rows.count, rows.size, columns));
  const ptrdiff_t stride = ptrdiff_t{sheet.size.width} * 3;
  sheet.pixels.assign(static_cast<size_t>(stride) * static_cast<size_t>(sheet.size.height), kWhite);
  for (int64_t i = 0; i < rows.count; ++i) {
    const ptrdiff_t left = i % columns * (rows.size.width + kSheetGap);
    const ptrdiff_t top = i / columns * (rows.size.height + kSheetGap);
    uint8_t* const to = sheet.pixels.data() + top * stride + left * 3;
    DrawImage(rows, i, to, stride);
    DrawObjects(rows.objects, i, {to, stride, rows.size});
  }
  return sheet;
}

}  // namespace stoker
