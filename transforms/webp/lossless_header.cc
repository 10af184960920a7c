#include "transforms/webp/lossless_header.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace stoker::webp {
namespace {

constexpr int kMaxLength = 15;  // of a code, in bits
constexpr int kMaxCacheBits = 11;
constexpr int kLiterals = 256;
constexpr int kLengths = 24;  // prefixes of the lengths of copies
constexpr int kDistances = 40;

// Reads the lowest bit of each byte first; zeros after the end.
class Bits {
 public:
  explicit Bits(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  uint32_t Read(int count) {
    uint32_t value = 0;
    for (int i = 0; i < count; ++i, ++at_) {
      if (at_ / 8 < bytes_.size()) value |= (bytes_[at_ / 8] >> at_ % 8 & 1U) << i;
    }
    return value;
  }
  bool ended() const { return at_ > 8 * bytes_.size(); }

 private:
  std::span<const uint8_t> bytes_;
  size_t at_ = 0;
};

// A canonical Huffman code, decoded bit by bit.
class Code {
 public:
  // Returns false if the lengths do not form a complete code.
  bool Build(std::span<const uint8_t> lengths) {
    counts_ = {};
    symbols_.clear();
    for (const uint8_t length : lengths) ++counts_[length];
    counts_[0] = 0;
    for (int length = 1; length <= kMaxLength; ++length) {
      for (size_t i = 0; i < lengths.size(); ++i) {
        if (lengths[i] == length) symbols_.push_back(static_cast<int>(i));
      }
    }
    if (symbols_.size() <= 1) return symbols_.size() == 1;
    int open = 1;
    for (int length = 1; length <= kMaxLength; ++length) {
      open = 2 * open - counts_[static_cast<size_t>(length)];
      if (open < 0) return false;
    }
    return open == 0;
  }

  int Read(Bits& bits) const {
    if (symbols_.size() == 1) return symbols_[0];  // takes no bit
    int code = 0, first = 0, index = 0;
    for (int length = 1; length <= kMaxLength; ++length) {
      code |= static_cast<int>(bits.Read(1));
      const int count = counts_[static_cast<size_t>(length)];
      if (code - first < count) return symbols_[static_cast<size_t>(index + code - first)];
      index += count;
      first = (first + count) * 2;
      code *= 2;
    }
    return 0;  // not reached with a complete code
  }

 private:
  std::array<int, kMaxLength + 1> counts_{};
  std::vector<int> symbols_;  // by length, then by value
};

// 3.7.2.1.1: one or two symbols.
void ReadSimpleLengths(Bits& bits, std::span<uint8_t> lengths) {
  const bool two = bits.Read(1) != 0;
  const uint32_t first = bits.Read(bits.Read(1) != 0 ? 8 : 1);
  if (first < lengths.size()) lengths[first] = 1;
  if (!two) return;
  const uint32_t second = bits.Read(8);
  if (second < lengths.size()) lengths[second] = 1;
}

// 3.7.2.1.2: lengths that are coded themselves.
bool ReadNormalLengths(Bits& bits, std::span<uint8_t> lengths) {
  constexpr std::array<uint8_t, 19> kOrder = {17, 18, 0, 1,  2,  3,  4,  5,  16, 6,
                                              7,  8,  9, 10, 11, 12, 13, 14, 15};
  std::array<uint8_t, kOrder.size()> own{};
  const size_t given = bits.Read(4) + 4;
  for (size_t i = 0; i < given; ++i) own[kOrder[i]] = static_cast<uint8_t>(bits.Read(3));
  Code code;
  if (!code.Build(own)) return false;
  size_t left = lengths.size();
  if (bits.Read(1) != 0) {
    const int width = 2 + 2 * static_cast<int>(bits.Read(3));
    left = 2 + bits.Read(width);
    if (left > lengths.size()) return false;
  }
  uint8_t last = 8;
  for (size_t at = 0; at < lengths.size() && left > 0; --left) {
    const int symbol = code.Read(bits);
    if (symbol < 16) {
      lengths[at++] = static_cast<uint8_t>(symbol);
      if (symbol != 0) last = static_cast<uint8_t>(symbol);
      continue;
    }
    const size_t repeats = symbol == 16   ? 3 + bits.Read(2)
                           : symbol == 17 ? 3 + bits.Read(3)
                                          : 11 + bits.Read(7);
    if (repeats > lengths.size() - at) return false;
    std::fill_n(lengths.begin() + static_cast<ptrdiff_t>(at), repeats,
                symbol == 16 ? last : uint8_t{0});
    at += repeats;
  }
  return true;
}

bool ReadCode(Bits& bits, int alphabet, Code& code) {
  std::vector<uint8_t> lengths(static_cast<size_t>(alphabet));
  if (bits.Read(1) != 0) {
    ReadSimpleLengths(bits, lengths);
  } else if (!ReadNormalLengths(bits, lengths)) {
    return false;
  }
  return !bits.ended() && code.Build(lengths);
}

// 3.6.2.2: lengths and distances of copies.
uint32_t ReadPrefixed(Bits& bits, int prefix) {
  if (prefix < 4) return static_cast<uint32_t>(prefix) + 1;
  const int extra = (prefix - 2) / 2;
  return (static_cast<uint32_t>(2 + prefix % 2) << extra) + bits.Read(extra) + 1;
}

// The first 120 distance codes are nearby pixels: offsets in columns to the left and rows up
// (4.2.2).
struct PixelOffset {
  int columns, rows;
};
std::array<PixelOffset, 120> NearbyOffsets() {
  return {
      {{0, 1},  {1, 0},  {1, 1},  {-1, 1}, {0, 2},  {2, 0},  {1, 2},  {-1, 2}, {2, 1},  {-2, 1},
       {2, 2},  {-2, 2}, {0, 3},  {3, 0},  {1, 3},  {-1, 3}, {3, 1},  {-3, 1}, {2, 3},  {-2, 3},
       {3, 2},  {-3, 2}, {0, 4},  {4, 0},  {1, 4},  {-1, 4}, {4, 1},  {-4, 1}, {3, 3},  {-3, 3},
       {2, 4},  {-2, 4}, {4, 2},  {-4, 2}, {0, 5},  {3, 4},  {-3, 4}, {4, 3},  {-4, 3}, {5, 0},
       {1, 5},  {-1, 5}, {5, 1},  {-5, 1}, {2, 5},  {-2, 5}, {5, 2},  {-5, 2}, {4, 4},  {-4, 4},
       {3, 5},  {-3, 5}, {5, 3},  {-5, 3}, {0, 6},  {6, 0},  {1, 6},  {-1, 6}, {6, 1},  {-6, 1},
       {2, 6},  {-2, 6}, {6, 2},  {-6, 2}, {4, 5},  {-4, 5}, {5, 4},  {-5, 4}, {3, 6},  {-3, 6},
       {6, 3},  {-6, 3}, {0, 7},  {7, 0},  {1, 7},  {-1, 7}, {5, 5},  {-5, 5}, {7, 1},  {-7, 1},
       {4, 6},  {-4, 6}, {6, 4},  {-6, 4}, {2, 7},  {-2, 7}, {7, 2},  {-7, 2}, {3, 7},  {-3, 7},
       {7, 3},  {-7, 3}, {5, 6},  {-5, 6}, {6, 5},  {-6, 5}, {8, 0},  {4, 7},  {-4, 7}, {7, 4},
       {-7, 4}, {8, 1},  {8, 2},  {6, 6},  {-6, 6}, {8, 3},  {5, 7},  {-5, 7}, {7, 5},  {-7, 5},
       {8, 4},  {6, 7},  {-6, 7}, {7, 6},  {-7, 6}, {8, 5},  {7, 7},  {-7, 7}, {8, 6},  {8, 7}}};
}

size_t DistanceOf(uint32_t code, int width) {
  static const std::array<PixelOffset, 120> near = NearbyOffsets();
  if (code > near.size()) return code - near.size();
  const PixelOffset& offset = near[code - 1];
  return static_cast<size_t>(std::max(offset.rows * width + offset.columns, 1));
}

// An image inside the header: one group of codes, perhaps a color cache.
class SubImage {
 public:
  // Returns nullopt if data are damaged.
  static std::optional<std::vector<uint32_t>> Read(Bits& bits, int width, int height) {
    SubImage image;
    if (!image.ReadCodes(bits)) return std::nullopt;
    return image.ReadPixels(bits, width, height);
  }

 private:
  bool ReadCodes(Bits& bits) {
    if (bits.Read(1) != 0) {
      cache_bits_ = static_cast<int>(bits.Read(4));
      if (cache_bits_ < 1 || cache_bits_ > kMaxCacheBits) return false;
      cache_.assign(size_t{1} << cache_bits_, 0);
    }
    const int cached = cache_bits_ > 0 ? 1 << cache_bits_ : 0;
    return ReadCode(bits, kLiterals + kLengths + cached, codes_[0]) &&
           ReadCode(bits, kLiterals, codes_[1]) && ReadCode(bits, kLiterals, codes_[2]) &&
           ReadCode(bits, kLiterals, codes_[3]) && ReadCode(bits, kDistances, codes_[4]);
  }

  void Add(uint32_t pixel) {
    pixels_.push_back(pixel);
    if (cache_bits_ > 0) cache_[(pixel * 0x1E35A7BDU) >> (32 - cache_bits_)] = pixel;
  }

  std::optional<std::vector<uint32_t>> ReadPixels(Bits& bits, int width, int height) {
    const size_t count = static_cast<size_t>(width) * static_cast<size_t>(height);
    while (pixels_.size() < count && !bits.ended()) {
      const int symbol = codes_[0].Read(bits);
      if (symbol < kLiterals) {
        const auto part = [&](size_t i) { return static_cast<uint32_t>(codes_[i].Read(bits)); };
        const uint32_t red = part(1), blue = part(2), alpha = part(3);
        Add(alpha << 24 | red << 16 | static_cast<uint32_t>(symbol) << 8 | blue);
        continue;
      }
      if (symbol >= kLiterals + kLengths) {
        Add(cache_[static_cast<size_t>(symbol - kLiterals - kLengths)]);
        continue;
      }
      const size_t length = ReadPrefixed(bits, symbol - kLiterals);
      const size_t distance = DistanceOf(ReadPrefixed(bits, codes_[4].Read(bits)), width);
      if (distance > pixels_.size() || length > count - pixels_.size()) return std::nullopt;
      for (size_t i = 0; i < length; ++i) Add(pixels_[pixels_.size() - distance]);
    }
    if (pixels_.size() < count) return std::nullopt;
    return std::move(pixels_);
  }

  int cache_bits_ = 0;
  std::array<Code, 5> codes_;
  std::vector<uint32_t> cache_, pixels_;
};

int Shared(int side, int bits) { return (side + (1 << bits) - 1) >> bits; }

// Reads past the transforms (3.5). Returns false if data are damaged. A palette makes the image
// narrower: several indices share a pixel.
bool SkipTransforms(Bits& bits, ImageSize& size) {
  std::array<bool, 4> seen{};
  while (bits.Read(1) != 0) {
    const uint32_t kind = bits.Read(2);
    if (std::exchange(seen[kind], true)) return false;
    switch (kind) {
      case 0:    // predictor
      case 1: {  // colour
        const int block = static_cast<int>(bits.Read(3)) + 2;
        if (!SubImage::Read(bits, Shared(size.width, block), Shared(size.height, block))) {
          return false;
        }
        break;
      }
      case 2:  // green is subtracted: nothing to read
        break;
      default: {  // palette
        const int colors = static_cast<int>(bits.Read(8)) + 1;
        if (!SubImage::Read(bits, colors, 1)) return false;
        size.width = Shared(size.width, colors > 16 ? 0 : colors > 4 ? 1 : colors > 2 ? 2 : 3);
      }
    }
  }
  return true;
}

}  // namespace

LosslessHeader ReadLosslessHeader(std::span<const uint8_t> data, ImageSize size) {
  LosslessHeader header;
  Bits bits(data);
  if (!SkipTransforms(bits, size)) return header;
  if (bits.Read(1) != 0) {
    header.color_cache_bits = std::min(static_cast<int>(bits.Read(4)), kMaxCacheBits);
  }
  if (bits.Read(1) == 0) return header;
  const int block = static_cast<int>(bits.Read(3)) + 2;
  const auto numbers = SubImage::Read(bits, Shared(size.width, block), Shared(size.height, block));
  if (!numbers) return header;
  std::vector<bool> used(1 << 16);
  int distinct = 0;
  for (const uint32_t pixel : *numbers) {
    const size_t number = pixel >> 8 & 0xFFFF;
    header.group_numbers = std::max(header.group_numbers, static_cast<int>(number) + 1);
    if (!used[number]) ++distinct;
    used[number] = true;
  }
  // libwebp leaves out unused group numbers if there are many.
  const bool left_out = header.group_numbers > 1000 ||
                        int64_t{header.group_numbers} > int64_t{size.width} * size.height;
  header.groups = left_out ? distinct : header.group_numbers;
  return header;
}

}  // namespace stoker::webp
