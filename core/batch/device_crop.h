// DeviceCrop: all that a device needs to make one batch row of a JPEG: the bits of the crop's
// blocks, and how to decode and resample them. The source is a packed JPEG
// (transforms/packed/format.h), whose crop has runs, or a plain JPEG with a crop index
// (transforms/jpeg/fast/index/crop_index.h), whose crop has intervals. CropMaker
// (transforms/device/crop_maker.h) makes it on the host; the kernels of gpu/crops turn it into the
// pixels of the CPU's decoder and resampler, to the bit. (A forged run longer than its recorded
// size, or a forged index, gives wrong pixels, but never reads out of bounds.)
//
// Plain data, read by kernels: fixed sizes, no pointers. The host has checked everything except the
// bits, the Huffman tables and the predictors, which may have any content: reading never goes past
// the crop, and all bits decode to samples.
//
//   DeviceCrop │ runs, or intervals │ Huffman tables │ tiles │ starts and weights of rows │
//   … of columns │ bits
//
// Positions (`…_at`) count bytes from the DeviceCrop, which is aligned to kCropAlignment.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace stoker::decode {

inline constexpr size_t kCropAlignment = 16;
// Samples lie in rows of whole groups: four blocks side by side.
inline constexpr uint32_t kGroupSamples = 32;

// The host decodes larger ones, so positions of bits and of samples fit into 32 bits.
inline constexpr size_t kMaxCropBytes = size_t{1} << 28;
inline constexpr uint64_t kMaxCropGroups = (uint64_t{1} << 32) / kGroupSamples;

// One run of a row of blocks: groups [from, to) of it are wanted.
struct CropRun {
  uint32_t at = 0;       // where it begins
  uint32_t samples = 0;  // where the samples of group `from` go in the crop's, × kGroupSamples
  uint8_t component = 0;
  uint8_t from = 0, to = 0;
  uint8_t unused = 0;
};

// Consecutive MCUs of one row of MCUs, without a restart marker among them. The first ones are
// parsed only; the others are wanted.
struct CropInterval {
  uint32_t bit = 0;              // where the first MCU begins, in the file's bytes
  std::array<int16_t, 3> dc{};   // the predictors before it
  uint8_t skipped = 0;           // MCUs to parse,
  uint8_t wanted = 0;            // … and those after them
  uint16_t column = 0, row = 0;  // of the first wanted one, in MCUs of the crop's samples
};

// A Huffman table as the file stores it: the number of codes of each length, and their symbols.
struct CropCodes {
  std::array<uint8_t, 16> count{};
  std::array<uint8_t, 256> symbol{};
};
inline constexpr uint32_t kMostCodes = 4;  // tables of a crop: baseline has two of each class

// A part of the output, computed by the threads of one block: `columns` × `rows` pixels of the
// resampled image, from (x, y) on.
struct CropTile {
  uint16_t x = 0, y = 0;
  uint8_t columns = 0, rows = 0;
  uint16_t unused = 0;
};

// A block's memory has room for this much, and tiles are chosen such that they do not need more.
// With less room, a multiprocessor has more blocks, and a crop has more tiles.
inline constexpr uint32_t kTilePixels = 3840;  // pixels of the image that a tile is computed from
inline constexpr uint32_t kTileMiddle = 1536;  // its rows × the columns of those pixels
inline constexpr int kTileRows = 16, kTileColumns = 64;

// Whether there is room for a tile of `rows` that is computed from this many pixels. Squares of two
// by two are converted together, so there may be one more pixel on each side.
constexpr bool TileHasRoom(int64_t source_columns, int64_t source_rows, int64_t rows) {
  return (source_columns + 2) * (source_rows + 2) <= kTilePixels &&
         (source_columns + 2) * rows <= kTileMiddle;
}

// AxisTaps (transforms/resize/axis_filter.h): int32 starts, and weights in pairs.
struct CropAxis {
  uint32_t starts_at = 0, weights_at = 0;
  uint32_t pairs = 0;  // of an output
};
struct alignas(4) WeightPair {
  int16_t first, second;
};

// The samples of one component, row by row.
struct CropPlane {
  uint32_t first = 0;              // × kGroupSamples in the crop's samples
  uint32_t stride = 0;             // samples
  int32_t x = 0, y = 0;            // the first sample, in the component
  int32_t last_x = 0, last_y = 0;  // of the component: the outermost count twice
};

struct alignas(kCropAlignment) DeviceCrop {
  // The quantization factors of each component, by columns, so that those of one thread are
  // adjacent.
  alignas(kCropAlignment) std::array<std::array<std::array<uint16_t, 8>, 8>, 3> factor{};
  std::array<CropPlane, 3> plane;
  uint8_t gray = 0;                               // one component
  uint8_t wide = 0;                               // chroma has half as many columns
  uint8_t tall = 0;                               // … rows
  uint8_t codes = 0;                              // Huffman tables
  std::array<uint8_t, 3> dc_codes{}, ac_codes{};  // of each component
  std::array<uint8_t, 10> unused{};
  uint32_t runs = 0, runs_at = 0;
  uint32_t intervals = 0, intervals_at = 0;
  uint32_t codes_at = 0;
  uint32_t bytes = 0;  // of the crop, with all that follows
  uint32_t tiles = 0, tiles_at = 0;
  // The pixels that are resampled, in the image; starts count from the first one.
  int32_t x = 0, y = 0, width = 0, height = 0;
  CropAxis rows, columns;
  int32_t middle_shift = 0, last_shift = 0;  // after rows, and after columns
  // The offset of the first pixel in the batch row, and the distances to the next pixels, in bytes.
  int32_t out = 0, along = 0, down = 0;
  uint64_t samples = 0;  // where the crop's samples begin, × kGroupSamples
};
static_assert(std::is_trivially_copyable_v<DeviceCrop> && sizeof(DeviceCrop) % kCropAlignment == 0);
static_assert(std::has_unique_object_representations_v<DeviceCrop>);  // it has no gaps
static_assert(sizeof(CropRun) == 12 && sizeof(CropInterval) == 16 && sizeof(CropTile) == 8);
static_assert(sizeof(CropCodes) == 272);

// The crops of a batch.
struct CropBatch {
  const uint8_t* bytes = nullptr;     // the crops
  uint64_t first_byte = 0;            // of all the batch's regions, where `bytes` begin
  const uint64_t* crop_at = nullptr;  // of each row: its crop in the regions, or kNoCrop
  uint8_t* samples = nullptr;         // scratch, aligned to kGroupSamples
  uint8_t* to = nullptr;              // rows of pixels: u8, NHWC
  size_t row_bytes = 0;
  uint32_t rows = 0;
  // The largest counts in any crop of the batch. A kernel whose count is 0 is not launched.
  uint32_t most_runs = 0, most_intervals = 0, most_tiles = 0;
};

// The host has decoded the row.
inline constexpr uint64_t kNoCrop = ~uint64_t{0};

}  // namespace stoker::decode
