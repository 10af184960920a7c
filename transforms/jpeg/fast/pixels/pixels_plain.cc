#include <algorithm>
#include <cstddef>

#include "transforms/jpeg/fast/pixels/pixels.h"

namespace stoker::jpeg {

void UpsampleColumnsPlain(const uint8_t* row, int samples, uint8_t* out) {
  for (int i = 0; i < samples; ++i) {
    out[2 * i] = static_cast<uint8_t>((3 * row[i] + row[i - 1] + 1) >> 2);
    out[2 * i + 1] = static_cast<uint8_t>((3 * row[i] + row[i + 1] + 2) >> 2);
  }
}

void UpsampleRowsPlain(const uint8_t* near, const uint8_t* far, bool below, int samples,
                       uint8_t* out) {
  for (int i = 0; i < samples; ++i) {
    out[i] = static_cast<uint8_t>((3 * near[i] + far[i] + (below ? 2 : 1)) >> 2);
  }
}

void UpsampleBothPlain(const uint8_t* near, const uint8_t* far, int samples, uint8_t* out) {
  const auto blend = [=](int i) { return 3 * near[i] + far[i]; };
  for (int i = 0; i < samples; ++i) {
    out[2 * i] = static_cast<uint8_t>((3 * blend(i) + blend(i - 1) + 8) >> 4);
    out[2 * i + 1] = static_cast<uint8_t>((3 * blend(i) + blend(i + 1) + 7) >> 4);
  }
}

namespace {

// Pixel i goes to index i × step of each channel.
void ConvertTo(const YccRow& from, int pixels, const RgbRow& to, ptrdiff_t step) {
  constexpr int kHalf = 1 << 15;
  const auto byte = [](int v) { return static_cast<uint8_t>(std::clamp(v, 0, 255)); };
  for (int i = 0; i < pixels; ++i) {
    const int y = from.y[i], cb = from.cb[i] - 128, cr = from.cr[i] - 128;
    to.r[i * step] = byte(y + ((91881 * cr + kHalf) >> 16));                // 1.40200
    to.g[i * step] = byte(y + ((-22554 * cb - 46802 * cr + kHalf) >> 16));  // 0.34414, 0.71414
    to.b[i * step] = byte(y + ((116130 * cb + kHalf) >> 16));               // 1.77200
  }
}

}  // namespace

void ConvertToRgbPlain(const YccRow& from, int pixels, const RgbRow& to) {
  ConvertTo(from, pixels, to, 1);
}

void ConvertToInterleavedPlain(const YccRow& from, int pixels, uint8_t* to) {
  ConvertTo(from, pixels, {to, to + 1, to + 2}, 3);
}

}  // namespace stoker::jpeg
