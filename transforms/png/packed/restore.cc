#include "transforms/png/packed/restore.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>
#include <new>
#include <utility>

#include "core/result/try.h"
#include "transforms/decode/image_info.h"
#include "transforms/png/chunks.h"
#include "transforms/png/packed/packed_png.h"
#include "transforms/png/packed/recipe.h"
#include "transforms/png/rows.h"
#include "transforms/png/unfilter.h"

namespace stoker {
namespace packed_png {
namespace {

constexpr size_t kChunkFrame = 12;  // a chunk's length, type and checksum

// The filtered rows of a packed PNG.
class RowsToCompress {
 public:
  RowsToCompress(const PackedPng& file, const Recipe& recipe)
      : height_(file.header().size.height),
        pixel_(Planes(file.header()).count),
        filters_(recipe.filters),
        above_(pixel_ + static_cast<size_t>(file.header().RowBytes(file.header().size.width))),
        filtered_(above_.size() + 1 - pixel_) {}

  Status Start(const PackedPng& file) {
    const ImageSize size = file.header().size;
    const Growth room = reader_.Room(file.header());
    TRY(GrowAll({&room, 1}));
    reader_.Start(file, {0, 0, size.width, size.height});
    return {};
  }

  Result<std::span<const uint8_t>> Next() {
    if (y_ == height_) return std::span<const uint8_t>();
    ASSIGN_OR_RETURN(const uint8_t* const row, reader_.Next());
    filtered_[0] = filters_[static_cast<size_t>(y_++)];
    const size_t bytes = filtered_.size() - 1;
    current_.resize(above_.size());  // zeros before the row, as before that above
    std::copy_n(row, bytes, current_.data() + pixel_);
    png::FilterPlain(static_cast<png::Filter>(filtered_[0]), pixel_,
                     std::span(current_).subspan(pixel_), above_.data() + pixel_,
                     filtered_.data() + 1);
    std::swap(above_, current_);
    return std::span<const uint8_t>(filtered_);
  }

 private:
  MemoryBudget unlimited_{MemoryBudget::kNoLimit};
  BandReader reader_{unlimited_};
  const int height_;
  const size_t pixel_;
  const std::vector<uint8_t>& filters_;
  std::vector<uint8_t> above_, current_;  // after `pixel_` zeros
  std::vector<uint8_t> filtered_;
  int y_ = 0;
};

void AppendChunk(std::span<const uint8_t> data, std::vector<uint8_t>& png) {
  const auto append = [&png](uint32_t number) {
    for (int shift = 24; shift >= 0; shift -= 8) {
      png.push_back(static_cast<uint8_t>(number >> shift));
    }
  };
  append(static_cast<uint32_t>(data.size()));
  const size_t at = png.size();
  for (const char letter : {'I', 'D', 'A', 'T'}) png.push_back(static_cast<uint8_t>(letter));
  png.insert(png.end(), data.begin(), data.end());
  append(static_cast<uint32_t>(crc32_z(0, png.data() + at, png.size() - at)));
}

// Whether the runs divide `bytes` into chunks that are not empty, and how many these are.
bool Divide(std::span<const ChunkRun> runs, uint64_t bytes, uint64_t& chunks) {
  chunks = 0;
  for (const ChunkRun& run : runs) {
    if (run.bytes == 0 || run.count == 0 || run.count > bytes / run.bytes) return false;
    bytes -= uint64_t{run.bytes} * run.count;
    chunks += run.count;
  }
  return bytes == 0;
}

Result<RestoredPng> Restore(std::span<const uint8_t> packed) {
  ASSIGN_OR_RETURN(const PackedPng file, PackedPng::Open(packed));
  const uint64_t recipe_at = file.OffsetOf(file.recipe().data());
  const auto damaged = [&] { return Damaged("its recipe", recipe_at); };
  TRY(CheckSize(file.header().size, {}, sizeof(FixedPart)));
  Result<Recipe> read = ReadRecipe(file.recipe(), file.header().size.height);
  if (!read.ok()) return damaged();
  Recipe& recipe = *read;
  RowsToCompress rows(file, recipe);
  TRY(rows.Start(file));
  const Result<std::vector<uint8_t>> data =
      Compress(recipe.compression, [&rows] { return rows.Next(); });
  if (!data.ok()) return data.error();
  const std::span<const uint8_t> chunks = file.chunks();
  const auto all_bytes = [&](uint64_t count) {  // of a PNG with `count` chunks IDAT
    return chunks.size() + data->size() + kChunkFrame * count - kChunkFrame;
  };
  uint64_t count = 0;
  RestoredPng png{.bytes = {}, .is_exact = recipe.compression.is_exact != 0};
  png.is_exact = png.is_exact && Divide(recipe.chunks, data->size(), count) &&
                 all_bytes(count) == file.png_bytes();
  if (!png.is_exact) {
    if (data->size() > std::numeric_limits<int32_t>::max()) return damaged();
    recipe.chunks = {{.bytes = static_cast<uint32_t>(data->size()), .count = 1}};
    count = 1;
  }
  png.bytes.reserve(all_bytes(count));
  const auto at = chunks.begin() + static_cast<ptrdiff_t>(file.layout().data.begin);
  png.bytes.assign(chunks.begin(), at);
  std::span<const uint8_t> left = *data;
  for (const ChunkRun& run : recipe.chunks) {
    for (uint32_t i = 0; i < run.count; ++i) {
      AppendChunk(left.first(run.bytes), png.bytes);
      left = left.subspan(run.bytes);
    }
  }
  png.bytes.insert(png.bytes.end(), at + kChunkFrame, chunks.end());
  return png;
}

}  // namespace
}  // namespace packed_png

Result<RestoredPng> RestorePng(std::span<const uint8_t> packed) {
  try {
    return packed_png::Restore(packed);
  } catch (const std::bad_alloc&) {
    return Error{Code::kResourceExhausted, "out of memory for a PNG"};
  }
}

Status ComparePngs(std::span<const uint8_t> png, std::span<const uint8_t> packed) {
  using packed_png::kChunkFrame;
  ASSIGN_OR_RETURN(const packed_png::PackedPng file, packed_png::PackedPng::Open(packed));
  ASSIGN_OR_RETURN(const png::Header header, png::ReadHeader(png));
  ASSIGN_OR_RETURN(const png::Layout layout, png::ReadLayout(png, header));
  const auto differ = [] {
    return packed_png::Damaged("it has other pixels or chunks than its PNG", 0);
  };
  const size_t pixels_at = file.layout().data.begin;
  const std::span<const uint8_t> chunks = file.chunks();
  if (!std::ranges::equal(png.first(layout.data.begin), chunks.first(pixels_at)) ||
      !std::ranges::equal(png.subspan(layout.data.end), chunks.subspan(pixels_at + kChunkFrame))) {
    return differ();
  }
  const uint64_t row_bytes = header.RowBytes(header.size.width);
  MemoryBudget unlimited(MemoryBudget::kNoLimit);
  png::RowReader rows(unlimited);
  packed_png::BandReader bands(unlimited);
  const Growth growths[] = {rows.Room(header), bands.Room(header)};
  TRY(GrowAll(growths));
  rows.Start(png, header, layout, static_cast<uint64_t>(header.size.height) * (row_bytes + 1));
  bands.Start(file, {0, 0, header.size.width, header.size.height});
  for (int y = 0; y < header.size.height; ++y) {
    ASSIGN_OR_RETURN(const uint8_t* const wanted, rows.Next(header.size.width));
    ASSIGN_OR_RETURN(const uint8_t* const row, bands.Next());
    if (!std::equal(wanted, wanted + row_bytes, row)) return differ();
  }
  return {};
}

}  // namespace stoker
