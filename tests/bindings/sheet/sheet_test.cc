#include "bindings/sheet/sheet.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "bindings/sheet/sheet_png.h"
#include "tests/testing/images/make_png.h"
#include "transforms/png/reference_decoder.h"

namespace stoker {
namespace {

using Colour = std::array<uint8_t, 3>;

constexpr Colour kWhite{255, 255, 255};

struct Batch3 {
  ImageSize size;
  std::vector<uint8_t> images, masks;

  SheetRows rows() const {
    const int64_t pixels = int64_t{size.width} * size.height;
    return {.count = static_cast<int64_t>(masks.size()) / pixels,
            .size = size,
            .images = images.data(),
            .masks = masks.data()};
  }
};

Batch3 RandomBatch(int64_t count, ImageSize size, uint32_t seed = 1) {
  std::mt19937 random(seed);
  Batch3 batch{size, {}, {}};
  batch.masks.resize(static_cast<size_t>(count * size.width * size.height));
  batch.images.resize(batch.masks.size() * 3);
  for (uint8_t& byte : batch.images) byte = static_cast<uint8_t>(random());
  for (uint8_t& byte : batch.masks) byte = random() % 2 == 0 ? 0 : static_cast<uint8_t>(random());
  return batch;
}

Colour At(const WholeImage& sheet, int64_t x, int64_t y) {
  const uint8_t* const pixel = sheet.pixels.data() + (y * sheet.size.width + x) * 3;
  return {pixel[0], pixel[1], pixel[2]};
}

// VOC's map as its development kit computes it: bit j of the value's octal digits, channel by
// channel.
Colour VocColour(int value) {
  Colour colour{};
  for (int j = 0; j < 8; ++j) {
    for (size_t channel = 0; channel < 3; ++channel) {
      const int bit = value >> (3 * j + static_cast<int>(channel)) & 1;
      colour[channel] = static_cast<uint8_t>(colour[channel] | bit << (7 - j));
    }
  }
  return colour;
}

// Returns the expected pixel of a sheet, computed from its place alone.
Colour Wanted(const SheetRows& rows, int64_t columns, int64_t x, int64_t y) {
  const int64_t across = rows.size.width + kSheetGap, down = rows.size.height + kSheetGap;
  const int64_t image = y / down * columns + x / across;
  const int64_t left = x % across, top = y % down;
  if (left >= rows.size.width || top >= rows.size.height || image >= rows.count) return kWhite;
  const int64_t pixel = (image * rows.size.height + top) * rows.size.width + left;
  Colour colour{};
  std::copy_n(rows.images + pixel * 3, 3, colour.begin());
  const uint8_t value = rows.masks == nullptr ? uint8_t{0} : rows.masks[pixel];
  if (value == 0) return colour;
  const Colour over = VocColour(value);
  for (size_t i = 0; i < 3; ++i) {
    colour[i] = static_cast<uint8_t>((colour[i] + over[i] + 1) / 2);
  }
  return colour;
}

TEST(Sheet, ColoursAreThoseOfPascalVoc) {
  EXPECT_EQ(VocColour(1), (Colour{128, 0, 0}));        // aeroplane
  EXPECT_EQ(VocColour(15), (Colour{192, 128, 128}));   // person
  EXPECT_EQ(VocColour(20), (Colour{0, 64, 128}));      // tv monitor
  EXPECT_EQ(VocColour(255), (Colour{224, 224, 192}));  // void
  Batch3 batch{{256, 1}, std::vector<uint8_t>(768), std::vector<uint8_t>(256)};
  std::iota(batch.masks.begin(), batch.masks.end(), uint8_t{0});
  const WholeImage sheet = DrawSheet(batch.rows(), 1).value();
  for (int x = 0; x < 256; ++x) EXPECT_EQ(At(sheet, x, 0), Wanted(batch.rows(), 1, x, 0)) << x;
}

TEST(Sheet, EveryPixelIsThatOfItsImage) {
  for (const auto& [count, columns] :
       {std::pair{7, 3}, {6, 3}, {1, 8}, {5, 1}, {5, 5}, {3, 4096}}) {
    Batch3 batch = RandomBatch(count, {5, 4}, static_cast<uint32_t>(count));
    for (const bool masked : {false, true}) {
      SheetRows rows = batch.rows();
      if (!masked) rows.masks = nullptr;
      const WholeImage sheet = DrawSheet(rows, columns).value();
      const int across = std::min(count, columns), down = (count + across - 1) / across;
      ASSERT_EQ(sheet.size, (ImageSize{across * 7 - 2, down * 6 - 2}));
      ASSERT_EQ(sheet.pixels.size(), static_cast<size_t>(sheet.size.width * sheet.size.height * 3));
      for (int y = 0; y < sheet.size.height; ++y) {
        for (int x = 0; x < sheet.size.width; ++x) {
          ASSERT_EQ(At(sheet, x, y), Wanted(rows, columns, x, y))
              << count << ": " << x << ", " << y;
        }
      }
    }
  }
}

TEST(Sheet, LimitsAreErrorsThatSayWhatIsAllowed) {
  const auto refused = [](int64_t count, ImageSize size, int64_t columns) {
    const Result<ImageSize> sheet = SizeOfSheet(count, size, columns);
    EXPECT_FALSE(sheet.ok()) << count;
    return sheet.ok() ? "" : sheet.error().Message();
  };
  EXPECT_EQ(SizeOfSheet(4096, {64, 64}, 64).value(), (ImageSize{64 * 66 - 2, 64 * 66 - 2}));
  EXPECT_EQ(refused(4097, {1, 1}, 8), "a sheet of 4097 images was asked for; it has 1 to 4096.");
  EXPECT_EQ(refused(0, {1, 1}, 8), "a sheet of 0 images was asked for; it has 1 to 4096.");
  EXPECT_EQ(refused(1, {1, 0}, 8), "the images have no pixels.");
  EXPECT_EQ(refused(1, {1, 1}, 0), "a sheet of 0 columns was asked for; it has 1 to 4096.");
  const std::string most =
      " pixels; it may have 100000000 pixels, and sides of 65535. "
      "Show fewer or smaller images.";
  EXPECT_EQ(refused(1, {10000, 10001}, 8), "the sheet would have 10000 × 10001" + most);
  EXPECT_EQ(refused(4096, {30, 1}, 4096), "the sheet would have 131070 × 1" + most);
  EXPECT_EQ(refused(4096, {65535, 65535}, 1), "the sheet would have 65535 × 268439550" + most);
  EXPECT_FALSE(DrawSheet({.count = 4097, .size = {1, 1}}, 8).ok());
}

TEST(SheetPng, DecodesToTheSamePixels) {
  for (const ImageSize size : {ImageSize{1, 1}, {37, 1}, {1, 41}, {130, 97}}) {
    Batch3 batch = RandomBatch(3, size);
    const WholeImage sheet = DrawSheet(batch.rows(), 2).value();
    const std::vector<uint8_t> file = EncodeSheet(sheet).value();
    const WholeImage decoded = DecodeWholePng(file).value();
    EXPECT_EQ(decoded.size, sheet.size);
    EXPECT_EQ(decoded.layout, PixelLayout::kInterleaved);
    EXPECT_EQ(decoded.pixels, sheet.pixels);
  }
}

TEST(SheetPng, IsKnownByItsBeginning) {
  const Batch3 batch = RandomBatch(1, {3, 3});
  std::vector<uint8_t> file = EncodeSheet(DrawSheet(batch.rows(), 1).value()).value();
  EXPECT_TRUE(BeginsAsSheet(file));
  EXPECT_TRUE(BeginsAsSheet({file.data(), kSheetBeginBytes}));
  EXPECT_FALSE(BeginsAsSheet(testing::MakePng()));
  for (size_t size = 0; size < 66; ++size) EXPECT_FALSE(BeginsAsSheet({file.data(), size})) << size;
  file[0] ^= 1;
  EXPECT_FALSE(BeginsAsSheet(file));
}

// Draws objects pixel by pixel.
Colour WithObjects(const SheetObjects& objects, int64_t image, int x, int y, Colour colour) {
  for (int64_t i = objects.offsets[static_cast<size_t>(image)];
       i < objects.offsets[static_cast<size_t>(image) + 1]; ++i) {
    const Colour own = VocColour(ColourOfLabel(objects.labels[i]));
    const float* const box = objects.boxes + i * 4;
    const float right = std::max(std::ceil(box[2]), std::floor(box[0]) + 1) - 1;
    const float bottom = std::max(std::ceil(box[3]), std::floor(box[1]) + 1) - 1;
    const auto fx = static_cast<float>(x), fy = static_cast<float>(y);
    const float left = std::floor(box[0]), top = std::floor(box[1]);
    const bool inside = fx >= left && fx <= right && fy >= top && fy <= bottom;
    if (inside && (fx == left || fx == right || fy == top || fy == bottom)) colour = own;
    for (int64_t p = 0; p < objects.points_each; ++p) {
      const float* const point = objects.points + (i * objects.points_each + p) * 3;
      const bool near =
          std::abs(fx - std::floor(point[0])) <= 1 && std::abs(fy - std::floor(point[1])) <= 1;
      if (near && point[2] != 0) colour = own;
    }
  }
  return colour;
}

TEST(Sheet, DrawsTheOutlinesOfBoxesAndDotsOfPoints) {
  const Batch3 batch = RandomBatch(3, {9, 8});
  std::mt19937 random(3);
  const std::vector<int64_t> offsets{0, 2, 2, 5};
  std::vector<float> boxes, points;
  std::vector<int64_t> labels;
  const auto coordinate = [&] { return static_cast<float>(random() % 140) / 10 - 2; };
  for (int i = 0; i < 5; ++i) {
    const float left = coordinate(), top = coordinate();
    boxes.insert(boxes.end(), {left, top, left + std::abs(coordinate()), top + 1.5F});
    for (int p = 0; p < 2; ++p) {
      points.insert(points.end(), {coordinate(), coordinate(), static_cast<float>(random() % 3)});
    }
    labels.push_back(i * 128);
  }
  SheetRows rows = batch.rows();
  rows.masks = nullptr;
  rows.objects = {.offsets = offsets,
                  .boxes = boxes.data(),
                  .points = points.data(),
                  .points_each = 2,
                  .labels = labels.data()};
  const WholeImage sheet = DrawSheet(rows, 3).value();
  for (int image = 0; image < 3; ++image) {
    for (int y = 0; y < 8; ++y) {
      for (int x = 0; x < 9; ++x) {
        const uint8_t* const pixel = batch.images.data() + ((image * 8 + y) * 9 + x) * 3;
        const Colour plain{pixel[0], pixel[1], pixel[2]};
        ASSERT_EQ(At(sheet, image * (9 + kSheetGap) + x, y),
                  WithObjects(rows.objects, image, x, y, plain))
            << image << " " << x << " " << y;
      }
    }
  }
}

TEST(Sheet, LeavesOutBoxesThatAreNotFiniteOrOutside) {
  const Batch3 batch = RandomBatch(1, {9, 8});
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kMany = std::numeric_limits<float>::max();
  const std::vector<int64_t> offsets{0, 5};
  const std::vector<float> boxes{kNan, 0, 3,  3,  -kMany, -kMany, kMany, kMany, 3,     3,
                                 1,    1, -5, -5, -1,     -1,     kMany, kMany, kMany, kMany};
  const std::vector<float> points{kNan, 1, 1, kMany, -kMany, 2, 1, 1, 0, -9, -9, 1, 30, 30, 1};
  SheetRows rows = batch.rows();
  rows.masks = nullptr;
  const WholeImage plain = DrawSheet(rows, 1).value();
  rows.objects = {
      .offsets = offsets, .boxes = boxes.data(), .points = points.data(), .points_each = 1};
  EXPECT_EQ(DrawSheet(rows, 1).value().pixels, plain.pixels);
}

}  // namespace
}  // namespace stoker
