// Kernels run on memory of exactly the promised size, so that the address sanitizer sees any access
// outside it.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "tests/transforms/jpeg/fast/each_target.h"
#include "transforms/augment/blur/blur.h"
#include "transforms/augment/colour/colour.h"
#include "transforms/augment/colour/lookup.h"
#include "transforms/augment/colour/sharpen.h"
#include "transforms/augment/geometry/affine.h"
#include "transforms/augment/geometry/elastic.h"
#include "transforms/augment/geometry/mirror.h"
#include "transforms/augment/geometry/reframe.h"

namespace stoker {
namespace {

using testing::ForEachTarget;

constexpr std::align_val_t kAligned{64};

// Memory of exactly that many bytes, aligned like a GrowingBuffer's where kernels need it.
class Memory {
 public:
  explicit Memory(size_t bytes)
      : bytes_(static_cast<uint8_t*>(::operator new(bytes, kAligned)),
               [](uint8_t* memory) { ::operator delete(memory, kAligned); }) {
    for (size_t i = 0; i < bytes; ++i) bytes_.get()[i] = static_cast<uint8_t>(i * 31 + i / 100);
  }
  uint8_t* data() const { return bytes_.get(); }

 private:
  std::unique_ptr<uint8_t, void (*)(uint8_t*)> bytes_;
};

size_t TileBytes(ImageSize size, size_t channels) {
  return channels * Tile{nullptr, size}.plane_bytes() + kTileOverread;
}

// A kernel that writes elsewhere, and its reference.
void ExpectSame(ImageSize from_size, ImageSize to_size,
                const std::function<void(const Tile&, const Tile&)>& fast,
                const std::function<void(const Tile&, const Tile&)>& plain, size_t channels = 3) {
  const size_t from_bytes = TileBytes(from_size, channels), to_bytes = TileBytes(to_size, channels);
  const Memory from(from_bytes), to(to_bytes), wanted(to_bytes);
  fast({from.data(), from_size, channels}, {to.data(), to_size, channels});
  plain({from.data(), from_size, channels}, {wanted.data(), to_size, channels});
  const size_t bytes = to_bytes - kTileOverread;
  ASSERT_TRUE(std::equal(to.data(), to.data() + bytes, wanted.data()))
      << from_size.width << " x " << from_size.height;
}

void ExpectAllSame(ImageSize size) {
  ExpectSame(
      size, size, [](const Tile& from, const Tile& to) { Sharpen(from, 3, to); },
      [](const Tile& from, const Tile& to) { SharpenPlain(from, 3, to); });
  for (const ImageSize taps : {ImageSize{1, 1}, {3, 5}, {23, 9}, {65, 201}}) {
    const Blur blur{taps, taps.width / 4.0, taps.height / 4.0};
    const Memory scratch(BlurScratchBytes(blur, size));
    ExpectSame(
        size, size,
        [&](const Tile& from, const Tile& to) { BlurTo(from, blur, scratch.data(), to); },
        [&](const Tile& from, const Tile& to) { BlurPlain(from, blur, to); });
  }
  for (const auto& [how, padding] : {std::pair(Interpolation::kBilinear, Padding::kConstant),
                                     std::pair(Interpolation::kBilinear, Padding::kSymmetric),
                                     std::pair(Interpolation::kBilinear, Padding::kWrap)}) {
    Affine affine{{1.3, 0.7, 0, -0.7, 1.3, 0}, how, {1, 2, 3}, false, padding};
    for (const bool moved : {false, true}) {
      if (moved && padding != Padding::kConstant) continue;
      const ElasticNoise noise{.key = 1, .alpha = 30, .sigma = 1};
      const Memory numbers(DisplacementBytes(noise, size));
      Displacement by;
      if (moved) {
        affine.noise = noise;
        by = MakeDisplacement(noise, size, numbers.data());
      }
      const Memory scratch(AffineScratchBytes(size).value());
      ExpectSame(
          size, size,
          [&](const Tile& from, const Tile& to) { MapTo(from, affine, by, scratch.data(), to); },
          [&](const Tile& from, const Tile& to) { MapPlain(from, affine, to); });
    }
  }
}

// Those that move pixels, and so exist for one channel, too.
void ExpectMovesSame(ImageSize size, size_t channels) {
  for (const Padding padding :
       {Padding::kConstant, Padding::kReflect, Padding::kSymmetric, Padding::kWrap}) {
    Affine affine{{1.3, 0.7, 0, -0.7, 1.3, 0}, Interpolation::kNearest, {1, 2, 3}, false, padding};
    if (padding == Padding::kConstant) affine.divisor = {0.1, -0.03};
    const Memory scratch(AffineScratchBytes(size).value());
    ExpectSame(
        size, size,
        [&](const Tile& from, const Tile& to) { MapTo(from, affine, {}, scratch.data(), to); },
        [&](const Tile& from, const Tile& to) { MapPlain(from, affine, to); }, channels);
  }
  ExpectSame(
      size, size,
      [](const Tile& from, const Tile& to) {
        MirrorTo(from, {true, true}, to);
      },
      [](const Tile& from, const Tile& to) {
        MirrorPlain(from, {true, true}, to);
      },
      channels);
  const Reframe reframe{{-5, -7, size.width + 3, size.height + 20}, Padding::kReflect};
  ExpectSame(
      size, reframe.window.size(),
      [&](const Tile& from, const Tile& to) { ReframeTo(from, reframe, to); },
      [&](const Tile& from, const Tile& to) { ReframePlain(from, reframe, to); }, channels);
}

TEST(Bounds, KernelsTouchTheirTilesAndScratchOnly) {
  ForEachTarget([] {
    for (const ImageSize size :
         {ImageSize{1, 1}, {3, 3}, {3, 70}, {17, 5}, {33, 34}, {64, 8}, {97, 4}, {130, 3}}) {
      ExpectAllSame(size);
      ExpectMovesSame(size, 3);
      ExpectMovesSame(size, 1);
    }
  });
}

TEST(Bounds, InPlaceKernelsLeaveTheTileBehindAlone) {
  ForEachTarget([] {
    for (int width = 1; width < 140; width += 3) {
      const ImageSize size{width, 1};
      const Memory memory(3 * static_cast<size_t>(width));  // they do not even need the overread
      const Tile tile{memory.data(), size};
      Recolour(AdjustSaturation{0.5}, tile);
      Recolour(AdjustHue{0.25F}, tile);
      LookUp(TableOf(Invert{}), tile.pixels, 3 * static_cast<size_t>(width));
      EXPECT_LE(SumOfGray(tile), 255 * static_cast<uint64_t>(width));
      Recolour(Grayscale{}, tile);
      EXPECT_TRUE(std::equal(tile.plane(0), tile.plane(1), tile.plane(2)));
    }
  });
}

}  // namespace
}  // namespace stoker
