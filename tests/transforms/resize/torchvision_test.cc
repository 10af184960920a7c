// Pixels of ResampledAs::kTorchvision, as torchvision's resize of uint8 tensors made them.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ostream>
#include <vector>

#include "tests/testing/on_target.h"
#include "transforms/resize/plain.h"
#include "transforms/resize/resampler.h"

namespace stoker {
namespace {

// `hash` is of the result of torchvision 0.29.2 with torch 2.15.0 on a CPU with AVX2:
// v2.functional.resize(noise, [to.height, to.width], interpolation, antialias=True).
// tests/python/transforms/test_torchvision_resize.py reads the list, and makes the hashes again.
struct Case {
  ImageSize from, to;
  Interpolation interpolation;
  int channels;
  uint64_t hash;
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.from.width << " × " << c.from.height << " to " << c.to.width << " × "
             << c.to.height << ", " << NameOf(c.interpolation) << ", " << c.channels << " channels";
}

constexpr Interpolation kBilinear = Interpolation::kBilinear, kBicubic = Interpolation::kBicubic,
                        kLanczos = Interpolation::kLanczos;
constexpr Case kCases[] = {
    {{1, 1}, {9, 5}, kBicubic, 3, 0x827e21c2fee996fa},
    {{60, 1}, {7, 7}, kBilinear, 3, 0xbc4d255f48b33794},
    {{1, 60}, {20, 7}, kBicubic, 1, 0x2bd3bc076b4e4751},
    {{1, 2000}, {28, 392}, kBilinear, 3, 0xdf50646a3ccf2ffd},
    {{3000, 7}, {1, 224}, kBicubic, 3, 0x99dbf54c0646fbb9},
    {{31, 4000}, {30, 7}, kBicubic, 3, 0x15d2439566f8ff9a},
    {{500, 375}, {224, 224}, kBilinear, 3, 0xbb84ea0a92ed0eb6},
    {{500, 375}, {224, 224}, kBicubic, 3, 0x9c324d8624c34a87},
    {{500, 375}, {500, 224}, kBicubic, 3, 0x892380588f505f67},
    {{375, 500}, {224, 500}, kBilinear, 1, 0xbd15d6a34c9fc659},
    {{640, 480}, {224, 224}, kBilinear, 3, 0x1b45ec89ee9d1676},
    {{1024, 1024}, {1036, 1008}, kBicubic, 3, 0xc7ed8ad7a7460b69},
    {{333, 250}, {332, 251}, kBicubic, 1, 0xc1fbdc5003757cbc},
    {{333, 250}, {332, 251}, kBilinear, 3, 0x3b6387c22a0ee146},
    {{224, 224}, {1500, 1100}, kBicubic, 3, 0xf0d7879dfe9b5c90},
    {{64, 49}, {70, 30}, kLanczos, 3, 0xaf357b10a473b82a},
    {{60, 41}, {23, 9}, kBicubic, 3, 0x4a9cf38991a21a32},
    {{51, 40}, {20, 17}, kBicubic, 1, 0x62f21a1da0c9da62},
    {{40, 61}, {19, 25}, kBilinear, 3, 0x27ea83b81e40d9c3},
    {{65535, 1}, {1, 1}, kBicubic, 3, 0x2d34371adf582fad},
    {{2, 3}, {5, 4}, kLanczos, 3, 0xb232faa20f17cab0},
    {{801, 61}, {60, 700}, kLanczos, 3, 0xbd8c3195a222b214},
    {{5000, 3}, {3000, 4}, kBicubic, 3, 0x2b2b1fdb017ee13a},
};

// Noise, in rows of interleaved pixels; black and white noise if the width is odd, so that filters
// overshoot.
std::vector<uint8_t> NoiseFor(const Case& c) {
  std::vector<uint8_t> bytes(static_cast<size_t>(c.from.width * c.from.height * c.channels));
  uint32_t state = 1;
  for (uint8_t& byte : bytes) {
    state = state * 1664525 + 1013904223;
    byte = static_cast<uint8_t>(c.from.width % 2 == 0 ? state >> 24 : 255 * (state >> 31));
  }
  return bytes;
}

uint64_t HashOf(const std::vector<uint8_t>& bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const uint8_t byte : bytes) hash = (hash ^ byte) * 0x100000001b3;
  return hash;
}

Resampling TaskOf(const Case& c) {
  Resampling task;
  task.image = c.from;
  task.box = {0, 0, c.from.width, c.from.height};
  task.resized = c.to;
  task.window = {0, 0, c.to.width, c.to.height};
  task.interpolation = c.interpolation;
  task.resampler = ResampledAs::kTorchvision;
  return task;
}

ImageView ViewOf(const std::vector<uint8_t>& bytes, const Case& c) {
  ImageView view;
  view.layout = c.channels == 1 ? PixelLayout::kGray : PixelLayout::kInterleaved;
  view.size = c.from;
  view.plane[0] = bytes.data();
  view.stride[0] = ptrdiff_t{c.from.width} * c.channels;
  return view;
}

std::vector<uint8_t> RoomFor(const Case& c) {
  return std::vector<uint8_t>(static_cast<size_t>(c.to.width * c.to.height * c.channels));
}

PixelOutput OutputTo(std::vector<uint8_t>& pixels, const Case& c) {
  PixelOutput output{.row = pixels.data()};
  output.channels = c.channels;
  return output;
}

std::vector<uint8_t> Reference(const std::vector<uint8_t>& bytes, const Case& c) {
  std::vector<uint8_t> pixels = RoomFor(c);
  ResamplePlain(ViewOf(bytes, c), TaskOf(c), OutputTo(pixels, c));
  return pixels;
}

TEST(Torchvision, ReferenceHasTheSamePixels) {
  for (const Case& c : kCases) {
    if (c.from.width * c.from.height > 5000) continue;  // would take seconds
    SCOPED_TRACE(c);
    EXPECT_EQ(HashOf(Reference(NoiseFor(c), c)), c.hash);
  }
}

class TorchvisionOn : public testing::OnTarget {
 protected:
  // Returns nothing if the resampler stops early.
  std::vector<uint8_t> Resampled(const std::vector<uint8_t>& bytes, const Case& c) {
    const ImageView image = ViewOf(bytes, c);
    std::vector<uint8_t> pixels = RoomFor(c);
    const Rect region = resampler_.Start(TaskOf(c), OutputTo(pixels, c)).value();
    EXPECT_EQ(region.size(), c.from);
    EXPECT_TRUE(resampler_.Begin({image.layout, region}).ok());
    for (ptrdiff_t y = 0; y < c.from.height;) {
      const MutableImageView rows = resampler_.Reserve(7);
      for (ptrdiff_t r = 0; r < rows.size.height; ++r, ++y) {
        std::memcpy(rows.plane[0] + r * rows.stride[0], image.plane[0] + y * image.stride[0],
                    static_cast<size_t>(image.stride[0]));
      }
      resampler_.Commit(rows.size.height);
    }
    if (!resampler_.complete()) return {};
    return pixels;
  }

 private:
  MemoryBudget budget_{64 << 20};
  Resampler resampler_{budget_};
};

TEST_P(TorchvisionOn, ResamplerHasTheSamePixels) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c);
    EXPECT_EQ(HashOf(Resampled(NoiseFor(c), c)), c.hash);
  }
}

// Rounded weights can add up to more than 1 if an output takes many samples.
TEST_P(TorchvisionOn, WhiteIsAsInTheReference) {
  for (const Interpolation interpolation : {kBilinear, kBicubic, kLanczos}) {
    for (const ImageSize from : {ImageSize{65535, 1}, {1, 65535}, {9001, 2}, {3, 7000}}) {
      const Case c{from, {1, 2}, interpolation, 3, 0};
      SCOPED_TRACE(c);
      const std::vector<uint8_t> white(static_cast<size_t>(from.width * from.height * 3), 255);
      EXPECT_EQ(Resampled(white, c), Reference(white, c));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, TorchvisionOn, testing::EachTarget(), testing::NameOfTarget);

}  // namespace
}  // namespace stoker
