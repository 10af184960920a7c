#include "transforms/webp/library_bytes.h"

#include <algorithm>

namespace stoker::webp {
namespace {

uint64_t CeilDivide(int a, int b) { return static_cast<uint64_t>((a + b - 1) / b); }

}  // namespace

// libwebp 1.2.4, frame_dec.c, AllocateMemory: for each column of macroblocks 4 bytes of modes, 32
// of samples above, 2 and 4 of what is known of a macroblock, 800 of its coefficients, and 32 × (16
// + 8) × 3 / 2 of rows, of which 8 wait for the loop filter; io_dec.c keeps two rows of samples, 32
// bytes; the decoder itself takes less than 8 KiB.
uint64_t LossyBytes(ImageSize size) { return CeilDivide(size.width, 16) * 2032 + (12 << 10); }

uint64_t LosslessBytes(std::span<const uint8_t> image, ImageSize size) {
  (void)image;
  const uint64_t pixels = static_cast<uint64_t>(size.width) * static_cast<uint64_t>(size.height);
  const uint64_t blocks = CeilDivide(size.width, 4) * CeilDivide(size.height, 4);
  return 4 * (pixels + uint64_t{17} * static_cast<uint64_t>(size.width)) + 3 * 4 * blocks +
         (64 << 10);
}

}  // namespace stoker::webp
