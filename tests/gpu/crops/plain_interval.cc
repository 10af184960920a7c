#include "tests/gpu/crops/plain_interval.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "transforms/jpeg/fast/frame_header.h"
#include "transforms/jpeg/fast/pixels/inverse_dct.h"

namespace stoker::testing {
namespace {

using decode::CropCodes;
using decode::CropInterval;
using decode::DeviceCrop;

template <typename T>
T Read(const uint8_t* from) {
  T value;
  std::memcpy(static_cast<void*>(&value), from, sizeof(value));
  return value;
}

// The bits from one of the crop's on. Of each 0xFF the byte after it is left out. After the crop
// there are zeros.
class PlainBits {
 public:
  PlainBits(const uint8_t* bytes, uint32_t size, uint32_t bit)
      : bytes_(bytes), size_(size), at_(bit / 8) {
    for (uint32_t i = 0; i < bit % 8; ++i) (void)Bit();
  }

  uint32_t Bit() {
    if (left_ == 0) {
      const bool was_last = byte_ == 0xff;
      if (was_last) ++at_;
      byte_ = at_ < size_ ? bytes_[at_] : 0;
      ++at_;
      left_ = 8;
    }
    return byte_ >> --left_ & 1;
  }

  int Value(uint32_t size) {
    int value = 0;
    for (uint32_t i = 0; i < size; ++i) value = 2 * value + static_cast<int>(Bit());
    const bool negative = size > 0 && value < 1 << (size - 1);
    return negative ? value - (1 << size) + 1 : value;
  }

  // Zero if there is no such code.
  uint32_t Symbol(const CropCodes& codes) {
    uint32_t bits = 0, first = 0, index = 0;  // `first`: the first code of this length
    for (uint32_t length = 1; length <= 16; ++length) {
      bits = 2 * bits + Bit();
      const uint32_t count = codes.count[length - 1];
      if (bits < first + count) return codes.symbol[(index + bits - first) % 256];
      first = 2 * (first + count);
      index += count;
    }
    return 0;
  }

 private:
  const uint8_t* bytes_;
  uint32_t size_, at_;
  uint32_t byte_ = 0, left_ = 0;
};

std::array<uint8_t, 64> SamplesOfBlock(const std::array<int16_t, 64>& coefficients,
                                       const std::array<std::array<uint16_t, 8>, 8>& factors) {
  int block[64];
  for (size_t i = 0; i < 64; ++i) {
    block[i] = static_cast<int16_t>(coefficients[i] * factors[i % 8][i / 8]);
  }
  for (int x = 0; x < 8; ++x) jpeg::InverseDctLinePlain(block + x, 8, 1 << 10, 11);
  for (int& v : block) v = std::clamp(v, -32768, 32767);
  // The level shift is part of the rounding here, so that it wraps in the same way.
  constexpr int kRounding = (1 << 17) + (128 << 18);
  for (int y = 0; y < 8; ++y) jpeg::InverseDctLinePlain(block + 8 * y, 1, kRounding, 18);
  std::array<uint8_t, 64> samples{};
  for (size_t i = 0; i < 64; ++i) samples[i] = static_cast<uint8_t>(std::clamp(block[i], 0, 255));
  return samples;
}

std::array<int16_t, 64> CoefficientsOf(PlainBits& bits, const CropCodes& dc_codes,
                                       const CropCodes& ac_codes, int& predictor) {
  std::array<int16_t, 64> coefficients{};
  predictor += bits.Value(bits.Symbol(dc_codes) % 16);
  coefficients[0] = static_cast<int16_t>(predictor);
  for (uint32_t k = 0; k < 63;) {
    const uint32_t symbol = bits.Symbol(ac_codes);
    k += symbol / 16 + 1;
    if (symbol == 0 || k > 63) break;
    coefficients[jpeg::kZigZag[k]] = static_cast<int16_t>(bits.Value(symbol % 16));
  }
  return coefficients;
}

}  // namespace

void DecodeIntervalPlain(const uint8_t* bytes, uint32_t number,
                         const std::function<void(const PlainBlock&)>& take) {
  const auto crop = Read<DeviceCrop>(bytes);
  const auto interval =
      Read<CropInterval>(bytes + crop.intervals_at + number * sizeof(CropInterval));
  PlainBits bits(bytes, crop.bytes, interval.bit);
  std::array<int, 3> predictor{};
  std::copy(interval.dc.begin(), interval.dc.end(), predictor.begin());
  for (uint32_t mcu = 0; mcu < uint32_t{interval.skipped} + interval.wanted; ++mcu) {
    for (uint32_t component = 0; component < (crop.gray != 0 ? 1U : 3U); ++component) {
      const bool luma = component == 0;
      const uint32_t columns = luma && crop.wide != 0 ? 2 : 1;
      const uint32_t rows = luma && crop.tall != 0 ? 2 : 1;
      const auto codes_at = [&](uint8_t table) {
        return Read<CropCodes>(bytes + crop.codes_at + table * sizeof(CropCodes));
      };
      const CropCodes dc = codes_at(crop.dc_codes[component]);
      const CropCodes ac = codes_at(crop.ac_codes[component]);
      for (uint32_t i = 0; i < columns * rows; ++i) {
        const auto coefficients = CoefficientsOf(bits, dc, ac, predictor[component]);
        if (mcu < interval.skipped) continue;
        const uint32_t column = interval.column + mcu - interval.skipped;
        take({component, column * columns + i % columns, interval.row * rows + i / columns,
              SamplesOfBlock(coefficients, crop.factor[component])});
      }
    }
  }
}

}  // namespace stoker::testing
