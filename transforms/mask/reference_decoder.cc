#include "transforms/mask/reference_decoder.h"

#include <cstddef>
#include <cstring>
#include <optional>
#include <vector>

#include "core/result/try.h"
#include "transforms/mask/format.h"

namespace stoker {
namespace {

using packed_mask::Header;
using packed_mask::StepCode;

constexpr int kNone = -1;  // no value, and no pixel

struct Damage {};  // thrown, and caught by DecodeWholePackedMask

void Check(bool condition) {
  if (!condition) throw Damage();
}

class PlainBits {
 public:
  explicit PlainBits(std::span<const uint8_t> bytes) : bytes_(bytes) {}
  int Bit() {
    Check(at_ < 8 * bytes_.size());
    const int bit = bytes_[at_ / 8] >> at_ % 8 & 1;
    ++at_;
    return bit;
  }
  int Number(int bits) {
    int number = 0;
    for (int i = 0; i < bits; ++i) number |= Bit() << i;
    return number;
  }
  StepCode Code() {
    int bits = 0;
    for (int length = 1;; ++length) {
      bits |= Bit() << (length - 1);
      for (const StepCode& code : packed_mask::kCodes) {
        if (code.length == length && code.bits == bits) return code;
      }
    }
  }

 private:
  std::span<const uint8_t> bytes_;
  size_t at_ = 0;
};

using PlainRow = std::vector<int>;  // the value of each pixel; empty if there is none

class PlainDecoder {
 public:
  PlainDecoder(const Header& header, std::vector<int> values)
      : width_(header.width), values_(std::move(values)) {}

  PlainRow Row(PlainBits& bits, const PlainRow& above) const {
    if (bits.Bit() == 1) {
      Check(!above.empty());
      return above;
    }
    if (above.empty()) return Row(bits, PlainRow(static_cast<size_t>(width_), kNone), true);
    return Row(bits, above, false);
  }

 private:
  static int At(const PlainRow& row, int x) { return row[static_cast<size_t>(x)]; }

  // Returns the first pixel after `from` with which a run above begins whose value is not `other`;
  // the width if there is none.
  int NextAbove(const PlainRow& above, int from, int other) const {
    int x = from + 1;
    while (x < width_ && (At(above, x) == At(above, x - 1) || At(above, x) == other)) ++x;
    return x;
  }

  int Value(PlainBits& bits) const {
    const auto last = static_cast<uint16_t>(values_.size() - 1);
    const auto index = static_cast<size_t>(bits.Number(packed_mask::IndexBits(last)));
    Check(index < values_.size());
    return values_[index];
  }

  PlainRow Row(PlainBits& bits, const PlainRow& above, bool is_first) const {
    PlainRow row;
    int value = 0;
    if (bits.Bit() == 1) {
      Check(!is_first);
      value = At(above, 0);
    } else {
      value = Value(bits);
    }
    int passed = 0;  // runs above that begin up to here do not count
    while (true) {
      const int begin = static_cast<int>(row.size());  // of the run with this value
      const int next = NextAbove(above, std::max(begin, passed), value);
      const StepCode code = bits.Code();
      if (code.kind == StepCode::Kind::kPass) {
        Check(next < width_);
        passed = next;
        continue;
      }
      int end = next + code.shift;
      int following = next < width_ ? At(above, next) : kNone;
      if (code.kind == StepCode::Kind::kLength) {
        const int n = bits.Number(packed_mask::kLengthBits);
        end = begin + (1 << n) + bits.Number(n);
        if (end < width_) following = Value(bits);
      }
      Check(end > begin && end <= width_);
      row.resize(static_cast<size_t>(end), value);
      if (end == width_) return row;
      Check(following != kNone && following != value);
      value = following;
    }
  }

  const int width_;
  const std::vector<int> values_;
};

template <typename T>
T Read(std::span<const uint8_t> bytes, size_t at) {
  Check(at + sizeof(T) <= bytes.size());
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(value));
  return value;
}

WholeImage Decode(std::span<const uint8_t> bytes, bool wide, int64_t max_pixels) {
  const auto header = Read<Header>(bytes, 0);
  Check(header.magic == packed_mask::kMagic && header.version == packed_mask::kVersion);
  Check(header.bits == 8 || (header.bits == 16 && wide));
  Check(header.orientation >= 1 && header.orientation <= 8);
  const int width = header.width, height = header.height;
  Check(width > 0 && height > 0 && int64_t{width} * height <= max_pixels);
  size_t at = sizeof(Header);
  std::vector<int> values;
  for (int i = 0; i <= header.last_value; ++i, at += 2) {
    values.push_back(Read<uint16_t>(bytes, at));
    Check(header.bits == 16 || values.back() <= 255);
  }
  const int bands = (height + packed_mask::kBandRows - 1) / packed_mask::kBandRows;
  std::span<const uint8_t> rest = bytes.subspan(std::min(at + size_t{4} * bands, bytes.size()));
  const PlainDecoder decoder(header, values);
  WholeImage image{{width, height}, wide ? PixelLayout::kGray16 : PixelLayout::kGray, {}};
  uint32_t begin = 0;
  for (int band = 0; band < bands; ++band, at += 4) {
    const auto end = Read<uint32_t>(bytes, at);
    Check(begin <= end && end <= rest.size());
    PlainBits bits(rest.subspan(begin, end - begin));
    begin = end;
    PlainRow row;
    for (int y = band * packed_mask::kBandRows;
         y < std::min(height, (band + 1) * packed_mask::kBandRows); ++y) {
      row = decoder.Row(bits, row);
      for (const int value : row) {
        image.pixels.push_back(static_cast<uint8_t>(value));
        if (wide) image.pixels.push_back(static_cast<uint8_t>(value >> 8));
      }
    }
  }
  return image;
}

}  // namespace

Result<WholeImage> DecodeWholePackedMask(std::span<const uint8_t> bytes, bool wide,
                                         int64_t max_pixels) {
  try {
    return Decode(bytes, wide, max_pixels);
  } catch (const Damage&) {
    return Error{Code::kDataLoss, "damaged packed mask", {}, 0};
  }
}

}  // namespace stoker
