#include "tests/fuzz/decode/decode_packed_png.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/hash/crc32c.h"
#include "core/memory/buffer.h"
#include "tests/fuzz/decode/decode_formats.h"
#include "tests/fuzz/decode/fuzzed_rows.h"
#include "transforms/decode/image_decoder.h"
#include "transforms/png/packed/pack.h"
#include "transforms/png/packed/packed_png.h"
#include "transforms/png/packed/restore.h"
#include "transforms/png/packed/tiles.h"

namespace stoker::testing {
namespace {

using packed_png::DirectoryEntry;
using packed_png::FixedPart;

// Gives a changed file the checksums of its bytes, as somebody who forges one would.
void SignPackedPng(std::vector<uint8_t>& file) {
  FixedPart fixed;
  if (file.size() < sizeof(fixed)) return;
  std::memcpy(&fixed, file.data(), sizeof(fixed));
  if (fixed.chunk_bytes > file.size() - sizeof(fixed)) return;
  const auto chunks_at = file.begin() + sizeof(fixed);
  std::vector<uint8_t> chunks(chunks_at, chunks_at + fixed.chunk_bytes);
  MendPngChecksums(chunks);
  std::ranges::copy(chunks, chunks_at);
  const Result<png::Header> header = png::ReadHeader(chunks);
  if (!header.ok()) return;
  const size_t directory_at = sizeof(fixed) + fixed.chunk_bytes;
  const auto bands = static_cast<size_t>(
      (int64_t{header->size.height} + packed_png::kBandRows - 1) / packed_png::kBandRows);
  if (bands > (file.size() - directory_at) / sizeof(DirectoryEntry)) return;
  const size_t bands_at = directory_at + bands * sizeof(DirectoryEntry);
  const std::span<const uint8_t> bytes(file);
  size_t begin = 0;
  for (size_t band = 0; band < bands; ++band) {
    uint8_t* const at = file.data() + directory_at + band * sizeof(DirectoryEntry);
    DirectoryEntry entry;
    std::memcpy(&entry, at, sizeof(entry));
    if (begin <= entry.end && entry.end <= bytes.size() - bands_at) {
      entry.checksum = Crc32c(bytes.subspan(bands_at + begin, entry.end - begin));
    }
    begin = entry.end;
    std::memcpy(at, &entry, sizeof(entry));
  }
  fixed.checksum = Crc32c(bytes.subspan(sizeof(fixed), bands_at - sizeof(fixed)),
                          Crc32c(bytes.first(offsetof(FixedPart, checksum))));
  std::memcpy(file.data(), &fixed, sizeof(fixed));
}

// Returns whether the region could be decoded.
bool DecodeRegion(std::span<const uint8_t> file, const Rect& region, Rows& rows) {
  static MemoryBudget budget(kMemory);
  static ImageDecoder decoder(kTight, &budget);  // state must not leak
  const PaddedFile padded(file);
  Result<ImageInfo> info = decoder.Open(padded.file());
  if (!info.ok()) return false;
  const Status status = decoder.Decode(region, rows);
  if (!status.ok()) RequireSound(status.error(), file.size());
  return status.ok();
}

void RequireSame(const Rows& rows, const Rows& whole, const Rect& region) {
  Require(rows.rows().size() == static_cast<size_t>(region.height), "all rows are delivered");
  const auto pixel = static_cast<size_t>(BytesPerPixel(rows.region().layout));
  for (size_t y = 0; y < rows.rows().size(); ++y) {
    const uint8_t* const want = whole.rows()[static_cast<size_t>(region.y) + y].data() +
                                static_cast<size_t>(region.x) * pixel;
    Require(
        std::memcmp(rows.rows()[y].data(), want, static_cast<size_t>(region.width) * pixel) == 0,
        "pixels are those of the whole image");
  }
}

void DecodePacked(std::span<const uint8_t> file) {
  const PaddedFile padded(file);
  ImageDecoder decoder(kTight);
  const Result<ImageInfo> info = decoder.Open(padded.file());
  if (!info.ok()) return RequireSound(info.error(), file.size());
  if (info->format != ImageFormat::kPackedPng) return;
  const Rect region = ChooseRegion(info->size, Digest(file));
  const Rect all{0, 0, info->size.width, info->size.height};
  Rows rows, whole;
  const bool decodes = DecodeRegion(file, region, rows), is_sound = DecodeRegion(file, all, whole);
  Require(decodes || !is_sound, "what is decoded whole is decoded");
  if (is_sound) RequireSame(rows, whole, region);
  const Result<RestoredPng> restored = RestorePng(padded.file());
  Require(is_sound || !restored.ok(), "what cannot be decoded is not restored");
  if (!restored.ok()) return RequireSound(restored.error(), file.size());
  Rows of_png;
  Require(DecodeRegion(restored->bytes, all, of_png), "what is restored is a PNG");
  RequireSame(of_png, whole, all);
}

void PackPng(std::span<const uint8_t> input) {
  const PaddedFile png(input);
  constexpr size_t kAnySize = 1'000'000;
  static PngPacker packer(nullptr, kTight, kAnySize);
  const Result<PngPacker::Packed> packed = packer.Pack(png.file());
  if (!packed.ok()) {
    return Require(packed.error().code == Code::kUnimplemented,
                   "a PNG is packed, or stored as it is");
  }
  ImageDecoder decoder(kTight);
  const Result<ImageInfo> info = decoder.Open(png.file());
  Require(info.ok(), "what is packed can be opened");
  const Rect region = ChooseRegion(info->size, Digest(input));
  Rows rows, of_png;
  Require(DecodeRegion(input, region, of_png) && DecodeRegion(packed->bytes, region, rows),
          "what is packed can be decoded");
  Require(rows.region().layout == of_png.region().layout, "the layout is the PNG's");
  Require(rows.rows() == of_png.rows(), "pixels are those of the PNG");
}

void UnpackTiles(std::span<const uint8_t> input) {
  const PaddedFile tile(input);
  png::Header header;
  const uint64_t seed = Digest(input);
  constexpr png::Color kColors[] = {png::Color::kGray, png::Color::kRgb, png::Color::kGrayAlpha,
                                    png::Color::kRgba};
  header.color = kColors[seed % 4];
  header.bit_depth = seed / 4 % 2 == 0 ? 8 : 16;
  const packed_png::Planes planes(header);
  const auto rows = static_cast<int>(1 + seed / 8 % packed_png::kBandRows);
  const size_t stride = packed_png::kTileColumns * planes.count;
  std::vector<uint8_t> pixels(stride * static_cast<size_t>(rows)), wanted = pixels;
  const auto step = static_cast<ptrdiff_t>(stride);
  const bool fine = packed_png::UnpackTile(tile.file(), planes, rows, pixels.data(), step);
  Require(fine == packed_png::UnpackTilePlain(tile.file(), planes, rows, wanted.data(), step),
          "the reference takes and refuses the same tiles");
  Require(!fine || pixels == wanted, "pixels are the reference's");
}

}  // namespace

void DecodeFuzzedPackedPng(std::span<const uint8_t> input) {
  UnpackTiles(input);
  if (SniffFormat(input) == ImageFormat::kPng) return PackPng(input);
  DecodePacked(input);
  std::vector<uint8_t> mended(input.begin(), input.end());
  SignPackedPng(mended);
  DecodePacked(mended);
}

}  // namespace stoker::testing
