#include "tests/testing/images/make_png.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iterator>

#include "tests/testing/images/make_jpeg.h"

namespace stoker::testing {
namespace {

using Bytes = std::vector<uint8_t>;

void PutU32(Bytes& to, uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) to.push_back(static_cast<uint8_t>(value >> shift));
}

void Append(Bytes& to, std::span<const uint8_t> bytes) {
  for (const uint8_t byte : bytes) to.push_back(byte);
}

uint32_t Next(uint64_t& state) {
  state = state * 6364136223846793005U + 1442695040888963407U;
  return static_cast<uint32_t>(state >> 33);
}

struct Maker {
  explicit Maker(const PngOptions& o) : options(o), state(o.seed) {
    channels = o.color == 2 ? 3 : o.color == 4 ? 2 : o.color == 6 ? 4 : 1;
    step = std::max<size_t>(static_cast<size_t>(channels * o.bit_depth) / 8, 1);
    entries = o.palette_entries > 0 ? o.palette_entries : 1 << std::min(o.bit_depth, 8);
  }

  uint32_t Sample(int x, int y, int channel) {
    if (options.regions) {
      const auto shift = static_cast<int>(options.seed % 11);
      const auto region = static_cast<uint32_t>((x + y * y / 40 + shift) / 13 + (x + 2 * y) / 29);
      return region * 2654435761U >> (32 - std::min(options.bit_depth, 8))
                                         << (options.bit_depth == 16 ? 7 : 0);
    }
    const uint32_t noise = Next(state);
    if (options.color == 3) return noise % static_cast<uint32_t>(entries);
    const auto smooth = static_cast<uint32_t>(x * 700 + y * 1100 + channel * 20000);
    const uint32_t wide = noise % 5 == 0 ? noise & 0xFFFF : (smooth + noise % 3000) & 0xFFFF;
    return wide >> (16 - options.bit_depth);
  }

  // Appends a row with every dx-th pixel from x on.
  Bytes Row(int x, int dx, int y) {
    Bytes row;
    uint32_t bits = 0;
    int held = 0;
    for (; x < options.width; x += dx) {
      for (int c = 0; c < channels; ++c) {
        bits = bits << options.bit_depth | Sample(x, y, c);
        held += options.bit_depth;
        for (; held >= 8; held -= 8) row.push_back(static_cast<uint8_t>(bits >> (held - 8)));
      }
    }
    if (held > 0) row.push_back(static_cast<uint8_t>(bits << (8 - held)));
    return row;
  }

  // The filters as clause 9 of the standard defines them.
  static int Predict(int filter, int a, int b, int c) {
    const int p = a + b - c;
    const int pa = std::abs(p - a), pb = std::abs(p - b), pc = std::abs(p - c);
    const int paeth = pa <= pb && pa <= pc ? a : pb <= pc ? b : c;
    const std::array<int, 5> predictions = {0, a, b, (a + b) / 2, paeth};
    return predictions[static_cast<size_t>(filter)];
  }

  void AddPass(int x0, int y0, int dx, int dy) {
    if (x0 >= options.width) return;
    Bytes above;
    for (int y = y0; y < options.height; y += dy) {
      const Bytes row = Row(x0, dx, y);
      above.resize(row.size());
      const int filter = static_cast<int>(Next(state) % 5);
      raw.push_back(static_cast<uint8_t>(filter));
      for (size_t i = 0; i < row.size(); ++i) {
        const int a = i >= step ? row[i - step] : 0, c = i >= step ? above[i - step] : 0;
        raw.push_back(static_cast<uint8_t>(row[i] - Predict(filter, a, above[i], c)));
      }
      above = row;
    }
  }

  PngOptions options;
  uint64_t state;
  int channels = 1;
  size_t step = 1;
  int entries = 0;
  Bytes raw;  // what is compressed
};

Bytes Compressed(const Bytes& raw) {
  uLongf size = compressBound(raw.size());
  Bytes packed(size);
  if (compress2(packed.data(), &size, raw.data(), raw.size(), 6) != Z_OK) std::abort();
  packed.resize(size);
  return packed;
}

}  // namespace

Bytes PngChunk(std::string_view type, std::span<const uint8_t> data) {
  Bytes chunk;
  PutU32(chunk, static_cast<uint32_t>(data.size()));
  for (const char c : type) chunk.push_back(static_cast<uint8_t>(c));
  Append(chunk, data);
  PutU32(chunk, static_cast<uint32_t>(crc32_z(0, chunk.data() + 4, chunk.size() - 4)));
  return chunk;
}

Bytes MakePng(const PngOptions& options) {
  Maker maker(options);
  if (options.interlaced) {
    constexpr std::array<std::array<int, 4>, 7> kAdam7 = {{{0, 0, 8, 8},
                                                           {4, 0, 8, 8},
                                                           {0, 4, 4, 8},
                                                           {2, 0, 4, 4},
                                                           {0, 2, 2, 4},
                                                           {1, 0, 2, 2},
                                                           {0, 1, 1, 2}}};
    for (const auto& p : kAdam7) maker.AddPass(p[0], p[1], p[2], p[3]);
  } else {
    maker.AddPass(0, 0, 1, 1);
  }
  Bytes png = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
  Bytes header;
  PutU32(header, static_cast<uint32_t>(options.width));
  PutU32(header, static_cast<uint32_t>(options.height));
  for (const int value : {options.bit_depth, options.color, 0, 0, options.interlaced ? 1 : 0}) {
    header.push_back(static_cast<uint8_t>(value));
  }
  Append(png, PngChunk("IHDR", header));
  if (options.color == 3) {
    Bytes palette;
    for (int i = 0; i < 3 * maker.entries; ++i) {
      palette.push_back(static_cast<uint8_t>(Next(maker.state)));
    }
    Append(png, PngChunk("PLTE", palette));
  }
  const Bytes packed = Compressed(maker.raw);
  for (size_t at = 0; at < packed.size(); at += options.chunk_bytes) {
    const size_t n = std::min(options.chunk_bytes, packed.size() - at);
    Append(png, PngChunk("IDAT", std::span(packed).subspan(at, n)));
  }
  Append(png, PngChunk("IEND", {}));
  return png;
}

Bytes WithChunk(std::span<const uint8_t> png, std::string_view before,
                std::span<const uint8_t> chunk) {
  size_t at = 8;
  while (at + 12 <= png.size() &&
         !std::equal(before.begin(), before.end(), png.begin() + static_cast<ptrdiff_t>(at) + 4)) {
    at += 12 + (size_t{png[at]} << 24 | size_t{png[at + 1]} << 16 | size_t{png[at + 2]} << 8 |
                png[at + 3]);
  }
  Bytes longer(png.begin(), png.begin() + static_cast<ptrdiff_t>(at));
  Append(longer, chunk);
  Append(longer, png.subspan(at));
  return longer;
}

Bytes OrientationTiff(int orientation, bool big_endian) {
  const Bytes segment = ExifSegment(orientation, big_endian);
  constexpr ptrdiff_t kBefore = 10;  // marker, length and "Exif\0\0"
  return Bytes(segment.begin() + kBefore, segment.end());
}

}  // namespace stoker::testing
