#include "transforms/augment/emit_tile.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "tests/testing/effort.h"
#include "tests/transforms/jpeg/fast/each_target.h"
#include "transforms/resize/emit.h"

namespace stoker {
namespace {

using testing::Effort;
using testing::ForEachTarget;

constexpr size_t kGuard = 64;

// Emits a tile's pixels as a row of a batch, with a frame of bytes that must not change.
class Emitted {
 public:
  Emitted(ImageSize size, DType dtype, Layout layout, bool stream, bool upwards)
      : bytes_(3 * Tile{nullptr, size}.plane_bytes() * SizeOf(dtype) + 2 * kGuard, 0x5a),
        format_({bytes_.data(), dtype, kScale, kBias, layout}, size) {
    format_.stream = stream;
    first_ = bytes_.data() + kGuard;
    if (upwards) {
      first_ += (size.height - 1) * format_.down;
      format_.down = -format_.down;
    }
  }
  template <typename Emit>
  const std::vector<uint8_t>& By(Emit emit, const Tile& tile) {
    emit(tile, format_, first_);
    FlushEmitted();
    return bytes_;
  }

 private:
  static constexpr float kScale[3] = {0.017F, 0.0175F, -0.0174F}, kBias[3] = {-2.1F, 2.03F, 0};
  std::vector<uint8_t> bytes_;
  RowFormat format_;
  uint8_t* first_;
};

TEST(EmitTile, EveryFormatAndSizeMatchesTheReference) {
  std::mt19937 random(1);
  constexpr ImageSize kSizes[] = {{1, 1},    {1, 9},     {9, 1},    {31, 33},
                                  {64, 16},  {65, 63},   {224, 5},  {1024, 2},
                                  {1025, 3}, {65535, 1}, {1, 2049}, {224, 224}};
  for (const ImageSize size : kSizes) {
    if (size.width * size.height > 4000 && Effort(10) != 10) continue;
    std::vector<uint8_t> pixels(3 * Tile{nullptr, size}.plane_bytes() + kTileOverread);
    for (uint8_t& p : pixels) p = static_cast<uint8_t>(random());
    const Tile tile{pixels.data(), size};
    for (const DType dtype : {DType::kU8, DType::kF32, DType::kF16, DType::kBF16}) {
      for (const Layout layout : {Layout::kNhwc, Layout::kNchw}) {
        for (const bool upwards : {false, true}) {
          Emitted plain(size, dtype, layout, false, upwards);
          const std::vector<uint8_t>& wanted = plain.By(EmitTilePlain, tile);
          ForEachTarget([&] {
            for (const bool stream : {false, true}) {
              Emitted fast(size, dtype, layout, stream, upwards);
              ASSERT_TRUE(fast.By(EmitTile, tile) == wanted)
                  << size.width << " x " << size.height << " " << NameOf(dtype) << " "
                  << NameOf(layout) << " stream " << stream << " upwards " << upwards;
            }
          });
        }
      }
    }
  }
}

}  // namespace
}  // namespace stoker
