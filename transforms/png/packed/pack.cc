#include "transforms/png/packed/pack.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>
#include <string>
#include <utility>

#include "core/hash/crc32c.h"
#include "core/memory/buffer.h"
#include "core/result/try.h"
#include "transforms/decode/image_info.h"
#include "transforms/png/chunks.h"
#include "transforms/png/packed/format.h"
#include "transforms/png/packed/recipe.h"
#include "transforms/png/packed/restore.h"
#include "transforms/png/packed/tiles.h"
#include "transforms/png/rows.h"

namespace stoker {

using packed_png::DirectoryEntry;
using packed_png::FixedPart;
using packed_png::kBandRows;
using packed_png::kTileColumns;
using packed_png::Planes;

namespace {

Error KeptAsItIs(const std::string& why) {
  return {.code = Code::kUnimplemented,
          .cause = "this PNG is not packed: " + why,
          .advice = "Store it as it is"};
}

// An empty IDAT chunk.
constexpr uint8_t kNoPixels[] = {0, 0, 0, 0, 'I', 'D', 'A', 'T', 0x35, 0xAF, 0x06, 0x1E};

}  // namespace

struct PngPacker::State {
  State(MemoryBudget* given, const DecodeLimits& l, size_t percent)
      : limits(l), most_percent(percent), budget(given != nullptr ? *given : unlimited) {}

  Status ReadHeader(std::span<const uint8_t> file);
  Status PackPixels(std::span<const uint8_t> file);
  Status PackBands();
  uint8_t* PackBand(int count, uint8_t* to) const;
  void Sign(size_t recipe_bytes);
  Result<Packed> PackFile(std::span<const uint8_t> file);

  // Sizes and positions in the packed PNG.
  size_t MostBytes() const { return png.size() * most_percent / 100; }
  size_t ChunkBytes() const {
    return png.size() - (layout.data.end - layout.data.begin) + sizeof(kNoPixels);
  }
  size_t DirectoryAt() const { return sizeof(FixedPart) + ChunkBytes(); }
  size_t DirectoryBytes() const {
    return sizeof(DirectoryEntry) * static_cast<size_t>(packed_png::BandsOf(header.size));
  }

  const DecodeLimits limits;
  const size_t most_percent;
  MemoryBudget unlimited{std::numeric_limits<int64_t>::max()};
  MemoryBudget& budget;
  png::RowReader rows{budget};
  GrowingBuffer band{budget};    // its rows
  GrowingBuffer packed{budget};  // its first `size` bytes

  // State of the file being packed.
  std::span<const uint8_t> png;
  png::Header header;
  png::Layout layout;
  size_t size = 0;
};

PngPacker::PngPacker(MemoryBudget* budget, const DecodeLimits& limits, size_t most_percent)
    : state_(std::make_unique<State>(budget, limits, most_percent)) {}
PngPacker::~PngPacker() = default;
PngPacker::PngPacker(PngPacker&&) noexcept = default;
PngPacker& PngPacker::operator=(PngPacker&&) noexcept = default;

uint64_t PngPacker::memory_bytes() const {
  return state_->rows.memory_bytes() + state_->band.capacity() + state_->packed.capacity();
}

void PngPacker::FreeMemory() {
  state_->rows.FreeMemory();
  state_->band.Free();
  state_->packed.Free();
}

Status PngPacker::State::ReadHeader(std::span<const uint8_t> file) {
  png = file;
  if (png.size() > std::numeric_limits<uint32_t>::max() / 2) return KeptAsItIs("it is too large");
  Result<png::Header> read = png::ReadHeader(png);
  if (!read.ok()) return KeptAsItIs(read.error().cause);
  header = *read;
  if (header.interlaced) return KeptAsItIs("it is interlaced");
  if (!packed_png::HasPlanes(header)) return KeptAsItIs("it has fewer than 8 bits");
  if (Status fits = CheckSize(header.size, limits, png::kHeaderBytes); !fits.ok()) {
    return KeptAsItIs(fits.error().cause);
  }
  Result<png::Layout> found = png::ReadLayout(png, header);
  if (!found.ok()) return KeptAsItIs(found.error().cause);
  layout = *found;
  return {};
}

// Without a recipe.
Status PngPacker::State::PackPixels(std::span<const uint8_t> file) {
  TRY(ReadHeader(file));
  const size_t row = static_cast<size_t>(header.RowBytes(header.size.width));
  const auto band_rows = static_cast<size_t>(std::min(kBandRows, header.size.height));
  const size_t largest =
      static_cast<size_t>(packed_png::TilesOf(header.size)) *
      (sizeof(uint16_t) + packed_png::MostTileBytes(Planes(header).count, band_rows));
  const size_t all = largest * static_cast<size_t>(packed_png::BandsOf(header.size));
  const size_t before = DirectoryAt() + DirectoryBytes();
  const size_t most = std::min(MostBytes(), before + all) + largest;
  const Growth growths[] = {rows.Room(header), {band, band_rows * row}, {packed, before + most}};
  if (!GrowAll(growths).ok()) {
    return NoRoomToDecode("a PNG", header.size, MissingBytes(growths));
  }
  uint8_t* to = std::copy_n(png.data(), layout.data.begin, packed.data() + sizeof(FixedPart));
  to = std::ranges::copy(kNoPixels, to).out;
  std::ranges::copy(png.subspan(layout.data.end), to);
  size = before;
  TRY(PackBands());
  Sign(0);
  return {};
}

Status PngPacker::State::PackBands() {
  const uint64_t row = header.RowBytes(header.size.width);
  rows.Start(png, header, layout, static_cast<uint64_t>(header.size.height) * (row + 1));
  uint8_t* directory = packed.data() + DirectoryAt();
  const size_t bands_at = size;
  for (int y = 0; y < header.size.height; y += kBandRows) {
    const int count = std::min(kBandRows, header.size.height - y);
    for (int i = 0; i < count; ++i) {
      Result<const uint8_t*> read = rows.Next(header.size.width);
      if (!read.ok()) return KeptAsItIs(read.error().cause);
      std::copy_n(*read, row, band.data() + static_cast<size_t>(i) * row);
    }
    uint8_t* const begin = packed.data() + size;
    uint8_t* const end = PackBand(count, begin);
    size += static_cast<size_t>(end - begin);
    if (size > MostBytes()) return KeptAsItIs("packed it would be too large");
    const DirectoryEntry entry{.end = static_cast<uint32_t>(size - bands_at),
                               .checksum = Crc32c({begin, end})};
    std::memcpy(directory, &entry, sizeof(entry));
    directory += sizeof(entry);
  }
  return {};
}

// Packs the first `count` rows of `band`.
uint8_t* PngPacker::State::PackBand(int count, uint8_t* to) const {
  const Planes planes(header);
  const auto stride = static_cast<ptrdiff_t>(header.RowBytes(header.size.width));
  uint8_t* sizes = to;
  to += sizeof(uint16_t) * static_cast<size_t>(packed_png::TilesOf(header.size));
  for (int x = 0; x < header.size.width; x += kTileColumns) {
    const int columns = std::min(kTileColumns, header.size.width - x);
    const uint8_t* const from = band.data() + static_cast<size_t>(x) * planes.count;
    uint8_t* const end = packed_png::PackTile(from, stride, columns, count, planes, to);
    const auto bytes = static_cast<uint16_t>(end - to);
    std::memcpy(sizes, &bytes, sizeof(bytes));
    sizes += sizeof(bytes);
    to = end;
  }
  return to;
}

// Writes the fixed part.
void PngPacker::State::Sign(size_t recipe_bytes) {
  FixedPart fixed{.png_bytes = static_cast<uint32_t>(png.size()),
                  .chunk_bytes = static_cast<uint32_t>(ChunkBytes()),
                  .recipe_bytes = static_cast<uint32_t>(recipe_bytes)};
  std::memcpy(packed.data(), &fixed, sizeof(fixed));
  fixed.checksum = Crc32c({packed.data() + sizeof(fixed), ChunkBytes() + DirectoryBytes()},
                          Crc32c({packed.data(), offsetof(FixedPart, checksum)}));
  std::memcpy(packed.data(), &fixed, sizeof(fixed));
}

Result<PngPacker::Packed> PngPacker::State::PackFile(std::span<const uint8_t> file) {
  TRY(PackPixels(file));
  // The compressed data, once as they are and once restored; the packed PNG; the restored one.
  const uint64_t needed = 3 * png.size() + size;
  Reservation more(budget);
  if (!more.Resize(needed)) return NoRoomToDecode("a PNG", header.size, needed);
  ASSIGN_OR_RETURN(const packed_png::Recipe recipe, packed_png::FindRecipe(png, header, layout));
  std::vector<uint8_t> bytes;
  packed_png::Append(recipe, bytes);
  Sign(bytes.size());
  Packed result{.bytes = {packed.data(), packed.data() + size}};
  result.bytes.insert(result.bytes.end(), bytes.begin(), bytes.end());
  const size_t all = result.bytes.size();
  result.bytes.resize(all + kBufferPadding);
  const std::span<const uint8_t> made = std::span<const uint8_t>(result.bytes).first(all);
  const Status same = ComparePngs(file, made);
  if (!same.ok() && same.error().code == Code::kResourceExhausted) return same.error();
  if (!same.ok()) return KeptAsItIs("it would not be restored");
  if (recipe.compression.is_exact != 0) {
    ASSIGN_OR_RETURN(const RestoredPng restored, RestorePng(made));
    result.is_exact = std::ranges::equal(restored.bytes, file);
  }
  result.bytes.resize(all);
  return result;
}

Result<PngPacker::Packed> PngPacker::Pack(std::span<const uint8_t> png) {
  try {
    return state_->PackFile(png);
  } catch (const std::bad_alloc&) {
    return Error{Code::kResourceExhausted, "out of memory for a PNG"};
  }
}

Result<std::span<const uint8_t>> PngPacker::PackPixels(std::span<const uint8_t> png) {
  TRY(state_->PackPixels(png));
  return std::span<const uint8_t>(state_->packed.data(), state_->size);
}

}  // namespace stoker
