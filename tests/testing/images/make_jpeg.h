// Generates JPEGs of every kind.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace stoker::testing {

struct Sampling {
  int columns = 1;  // 1 to 4, relative to the other components
  int rows = 1;
};

enum class JpegColor { kGray, kYCbCr, kRgb, kCmyk, kYcck };

enum class JpegScans {
  kOne,
  kOnePerComponent,  // sequential, not interleaved
  kProgressive,      // libjpeg's default script
  kSpectral,         // progressive, each coefficient complete in one scan
  kSuccessive,       // progressive, all AC coefficients together, bit by bit
  kRefinedDc,        // progressive, only DC coefficients bit by bit, each component by itself
  kBands,            // progressive, bands and bits mixed as optimizers choose them
  kDcOnly,           // progressive without AC coefficients: decoders estimate them
  kCoarse,           // progressive without the last bit of all coefficients
  kMany,             // progressive: more than 1000 scans (kYCbCr only)
};

struct JpegOptions {
  int width = 64;
  int height = 48;
  JpegColor color = JpegColor::kYCbCr;
  std::vector<Sampling> sampling{};  // for each component from the first; {} is 1 × 1
  JpegScans scans = JpegScans::kOne;
  bool arithmetic = false;
  bool optimize = false;
  int quality = 90;
  int restart_interval = 0;  // MCUs
  int orientation = 0;       // EXIF; 0 means no such segment
  bool adobe_marker = true;  // for kRgb, kCmyk, kYcck
  uint64_t seed = 1;
};

// 4:2:0 and so on, for JpegOptions::sampling.
inline std::vector<Sampling> Luma(int columns, int rows) { return {{columns, rows}}; }

// The bytes of a photograph-like image: smooth areas, edges and noise, a function of the options.
// Aborts when libjpeg refuses the options.
std::vector<uint8_t> MakeJpeg(const JpegOptions& options = {});

// The gray JPEG with these coefficients, which are quantised by 1: 64 for each block, row by row,
// of blocks from left to right and from top to bottom. As many as the size in `options` needs.
std::vector<uint8_t> MakeGrayJpeg(std::span<const int16_t> coefficients,
                                  const JpegOptions& options);

// An APP1 segment, marker and length included, with an orientation tag.
std::vector<uint8_t> ExifSegment(int orientation, bool big_endian);

// `jpeg` with `segment` right after its start-of-image marker.
std::vector<uint8_t> WithSegment(std::span<const uint8_t> jpeg, std::span<const uint8_t> segment);

// Makes the header of `jpeg` say that it has this size. Frames of progressive JPEGs begin with the
// marker FF C2. Precondition: it has such a frame.
void SetJpegSize(std::vector<uint8_t>& jpeg, int width, int height, uint8_t frame = 0xC0);

}  // namespace stoker::testing
