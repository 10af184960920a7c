#include "transforms/resize/row_format.h"

#include <cstring>

#include "core/numbers/half.h"

namespace stoker {

namespace {

// Smaller rows may still be in a cache when their batch is taken.
constexpr ptrdiff_t kStreamedBytes = 64 << 10;

template <typename T>
void Put(T value, uint8_t* at) {
  std::memcpy(at, &value, sizeof(value));
}

void StoreValue(DType dtype, uint8_t value, float scale, float bias, uint8_t* at) {
  const float scaled = static_cast<float>(value) * scale;
  const float result = scaled + bias;
  switch (dtype) {
    case DType::kF32:
      return Put(result, at);
    case DType::kF16:
      return Put(Float16Bits(result), at);
    case DType::kBF16:
      return Put(BFloat16Bits(result), at);
    default:
      return Put(value, at);
  }
}

}  // namespace

RowFormat::RowFormat(const PixelOutput& output, ImageSize size)
    : dtype(output.dtype),
      layout(output.channels == 1 ? Layout::kNchw : output.layout),
      channels(output.channels) {
  const auto bytes = static_cast<ptrdiff_t>(SizeOf(dtype));
  const bool together = layout == Layout::kNhwc;
  const ImageSize whole = output.row_size.width != 0 ? output.row_size : size;
  along = together ? 3 * bytes : bytes;
  down = along * whole.width;
  channel = together ? bytes : down * whole.height;
  stream = output.read_later && channels * bytes * whole.width * whole.height >= kStreamedBytes;
  if (dtype == DType::kU8) return;
  for (int piece = 0; piece < 3; ++piece) {
    for (int i = 0; i < kPiece; ++i) {
      const int c = together ? (piece * kPiece + i) % 3 : piece;
      scale[piece][i] = output.scale[c];
      bias[piece][i] = output.bias[c];
    }
  }
}

void StorePixel(const RowFormat& format, const uint8_t* rgb, uint8_t* at) {
  for (int c = 0; c < format.channels; ++c, at += format.channel) {
    StoreValue(format.dtype, rgb[c], format.ScaleOf(c), format.BiasOf(c), at);
  }
}

}  // namespace stoker
