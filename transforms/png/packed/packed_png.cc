#include "transforms/png/packed/packed_png.h"

#include <algorithm>
#include <cstring>

#include "core/hash/crc32c.h"
#include "core/result/try.h"
#include "transforms/png/packed/tiles.h"

namespace stoker::packed_png {
namespace {

constexpr char kPackAgain[] = "Pack the PNG again";

template <typename T>
T LoadAs(const uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

// Returns an error of the chunks, with its offset in the file.
Error InChunks(Error error) {
  if (error.offset) *error.offset += sizeof(FixedPart);
  return error;
}

size_t StrideOf(const png::Header& header) {
  return static_cast<size_t>(TilesOf(header.size)) * kTileColumns * Planes(header).count;
}

}  // namespace

Error Damaged(const std::string& what, uint64_t offset) {
  return {.code = Code::kDataLoss,
          .cause = "damaged packed PNG: " + what,
          .offset = offset,
          .advice = kPackAgain};
}

Status PackedPng::ReadFixedPart() {
  if (bytes_.size() < sizeof(FixedPart)) return Damaged("it ends in its header", bytes_.size());
  fixed_ = LoadAs<FixedPart>(bytes_.data());
  if (fixed_.magic != kMagic) return Damaged("its first bytes", 0);
  if (fixed_.version != kVersion) {
    return Error{Code::kUnimplemented,
                 "a packed PNG of version " + std::to_string(fixed_.version),
                 {},
                 kMagic.size(),
                 "Read it with the version of stoker that wrote it, or a later one"};
  }
  const uint64_t needed = uint64_t{fixed_.chunk_bytes} + fixed_.recipe_bytes;
  if (needed > bytes_.size() - sizeof(FixedPart)) {
    return Damaged("it ends too early", bytes_.size());
  }
  return {};
}

Result<PackedPng> PackedPng::Open(std::span<const uint8_t> bytes) {
  PackedPng file;
  file.bytes_ = bytes;
  TRY(file.ReadFixedPart());
  const FixedPart& fixed = file.fixed_;
  const Result<png::Header> header = png::ReadHeader(file.chunks());
  if (!header.ok()) return InChunks(header.error());
  file.header_ = *header;
  if (!HasPlanes(file.header_)) return Damaged("its kind of pixels", sizeof(FixedPart));
  file.directory_at_ = sizeof(FixedPart) + fixed.chunk_bytes;
  const size_t entries = static_cast<size_t>(BandsOf(file.header_.size)) * sizeof(DirectoryEntry);
  if (entries > bytes.size() - file.directory_at_ - fixed.recipe_bytes) {
    return Damaged("it ends in its directory", bytes.size());
  }
  file.bands_at_ = file.directory_at_ + entries;
  constexpr size_t kCovered = offsetof(FixedPart, checksum);
  const uint32_t checksum =
      Crc32c(bytes.subspan(sizeof(FixedPart), file.bands_at_ - sizeof(FixedPart)),
             Crc32c(bytes.first(kCovered)));
  if (checksum != fixed.checksum) return Damaged("the checksum of its header", kCovered);
  if (file.EndOf(BandsOf(file.header_.size) - 1) !=
      bytes.size() - file.bands_at_ - fixed.recipe_bytes) {
    return Damaged("its length", bytes.size());
  }
  const Result<png::Layout> layout = png::ReadLayout(file.chunks(), file.header_);
  if (!layout.ok()) return InChunks(layout.error());
  file.layout_ = *layout;
  return file;
}

size_t PackedPng::EndOf(int band) const {
  if (band < 0) return 0;
  return LoadAs<DirectoryEntry>(bytes_.data() + directory_at_ +
                                static_cast<size_t>(band) * sizeof(DirectoryEntry))
      .end;
}

Result<std::span<const uint8_t>> PackedPng::Band(int band) const {
  const size_t at = directory_at_ + static_cast<size_t>(band) * sizeof(DirectoryEntry);
  const auto entry = LoadAs<DirectoryEntry>(bytes_.data() + at);
  const size_t begin = EndOf(band - 1);
  if (begin > entry.end || entry.end > bytes_.size() - bands_at_) {
    return Damaged("the end of a band", at);
  }
  const std::span<const uint8_t> bytes = bytes_.subspan(bands_at_ + begin, entry.end - begin);
  if (Crc32c(bytes) != entry.checksum) {
    return Damaged("the checksum of a band", bands_at_ + begin);
  }
  return bytes;
}

Growth BandReader::Room(const png::Header& header) {
  const auto rows = static_cast<size_t>(std::min(kBandRows, header.size.height));
  return {memory_, rows * StrideOf(header)};
}

void BandReader::Start(const PackedPng& file, const Rect& region) {
  file_ = &file;
  region_ = region;
  y_ = region.y;
  is_unpacked_ = false;
}

// Unpacks the rows of the band until the last one of the region, in the region's tiles.
Status BandReader::UnpackBand() {
  const png::Header& header = file_->header();
  const Planes planes(header);
  ASSIGN_OR_RETURN(const std::span<const uint8_t> band, file_->Band(y_ / kBandRows));
  const auto tiles = static_cast<size_t>(TilesOf(header.size));
  const auto damaged = [&] { return Damaged("the tiles of a band", file_->OffsetOf(band.data())); };
  if (band.size() < 2 * tiles) return damaged();
  const auto stride = static_cast<ptrdiff_t>(StrideOf(header));
  const int rows = std::min(kBandRows, region_.y + region_.height - y_ / kBandRows * kBandRows);
  const auto first = static_cast<size_t>(region_.x / kTileColumns);
  const auto last = static_cast<size_t>((region_.x + region_.width - 1) / kTileColumns);
  size_t at = 2 * tiles;
  for (size_t tile = 0; tile <= last; ++tile) {
    const size_t bytes = LoadAs<uint16_t>(band.data() + 2 * tile);
    if (bytes > band.size() - at) return damaged();
    if (tile >= first) {
      uint8_t* const to = memory_.data() + tile * kTileColumns * planes.count;
      if (!UnpackTile(band.subspan(at, bytes), planes, rows, to, stride)) return damaged();
    }
    at += bytes;
  }
  return {};
}

Result<const uint8_t*> BandReader::Next() {
  if (!is_unpacked_) TRY(UnpackBand());
  const auto row = static_cast<size_t>(y_ % kBandRows);
  ++y_;
  is_unpacked_ = y_ % kBandRows != 0;
  return memory_.data() + row * StrideOf(file_->header());
}

}  // namespace stoker::packed_png
