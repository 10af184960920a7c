#include "transforms/packed/scan/controls.h"

namespace stoker::packed {
namespace {

// Word `k` has `width` bits, from bit `bit` of its half. Returns the bit after it.
constexpr int PutBits(Control& control, int k, int width, int bit) {
  const auto i = static_cast<size_t>(k);
  const int first = width == 0 ? 0 : bit / 8;
  control.bytes[2 * i] = static_cast<uint8_t>(first);
  control.bytes[2 * i + 1] = static_cast<uint8_t>(width == 0 ? 0 : first + 1);
  control.up[i] = static_cast<uint16_t>(width == 0 ? 0 : 1 << (16 - bit % 8 - width));
  control.down[i] = static_cast<uint16_t>(width == 0 ? 0 : 1 << width);
  return bit + width;
}

constexpr Controls MakeControls() {
  Controls controls{};
  for (size_t i = 0; i < kTuples; ++i) {
    const uint8_t* const width = kWidths[i];
    const int half = 2 * (width[0] + width[1] + width[2] + width[3]);
    controls.second_half[i] = static_cast<uint8_t>(half / 8);
    controls.size[i] = static_cast<uint8_t>(half / 4);
    int bit = 0;
    for (int k = 0; k < kQuadWords; ++k) {
      if (k == kQuadWords / 2) bit = half % 8;
      bit = PutBits(controls.quad[i], k, width[k % 4], bit);
    }
    Control& control = controls.quad[i];
    for (size_t k = 0; k < control.bytes.size(); ++k) {
      const int from = k < control.bytes.size() / 2 ? 0 : half / 8;
      control.bytes_of_quad[k] = static_cast<uint8_t>(control.bytes[k] + from);
    }
  }
  for (size_t code = 0; code < controls.dc.size(); ++code) {
    const int width = DcWidth(static_cast<int>(code));
    for (int k = 0; k < kRunBlocks; ++k) PutBits(controls.dc[code], k, width, k % 8 * width);
  }
  return controls;
}

// Each word lies in two bytes, and each quad is a whole number of bytes.
constexpr bool FitInTwoBytes() {
  for (const auto& width : kWidths) {
    const int sum = width[0] + width[1] + width[2] + width[3];
    if (sum % 2 != 0) return false;
    for (int k = 0, bit = 0; k < kQuadWords; bit += width[k++ % 4]) {
      if (bit % 8 + width[k % 4] > 16 || width[k % 4] > kMaxWidth) return false;
    }
  }
  return true;
}
static_assert(FitInTwoBytes());

// So do DC differences, because none has 11 bits.
constexpr bool DcFitsInTwoBytes() {
  for (int code = 0; code < 16; ++code) {
    for (int k = 0; k < 8; ++k) {
      if (k * DcWidth(code) % 8 + DcWidth(code) > 16) return false;
    }
  }
  return true;
}
static_assert(DcFitsInTwoBytes());

}  // namespace

constexpr Controls kControls = MakeControls();

}  // namespace stoker::packed
