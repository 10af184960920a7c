// Generates PNGs of every kind.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace stoker::testing {

struct PngOptions {
  int width = 64;
  int height = 48;
  int color = 2;  // as in the file: 0 gray, 2 RGB, 3 palette, 4 gray and alpha, 6 RGBA
  int bit_depth = 8;
  bool interlaced = false;
  int palette_entries = 0;    // 0: as many as the bits can name
  size_t chunk_bytes = 1000;  // of an IDAT chunk, at most
  uint64_t seed = 1;
  bool regions = false;  // without noise: areas of one value, as in a mask
};

// Rows of smooth areas and noise, with all filters in turn. Written with zlib only, so that no
// tested code is involved.
std::vector<uint8_t> MakePng(const PngOptions& options = {});

// A chunk, with its length and checksum.
std::vector<uint8_t> PngChunk(std::string_view type, std::span<const uint8_t> data);

// `png` with `chunk` in front of its first chunk of that type ("IDAT", "IEND", …).
std::vector<uint8_t> WithChunk(std::span<const uint8_t> png, std::string_view before,
                               std::span<const uint8_t> chunk);

// A TIFF structure with an orientation tag, as in a chunk eXIf or EXIF.
std::vector<uint8_t> OrientationTiff(int orientation, bool big_endian);

}  // namespace stoker::testing
