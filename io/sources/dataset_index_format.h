// The format of a dataset's index file, which dataset_index.cc reads and dataset_index_writer.cc
// writes. Numbers are little-endian.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "core/hash.h"

namespace stoker::dataset_index {

static_assert(std::endian::native == std::endian::little);

inline constexpr std::array<char, 8> kMagic = {'S', 'T', 'K', 'I', 'N', 'D', 'E', 'X'};
inline constexpr uint32_t kVersion = 3;

struct Header {  // at the start of the file; `sections` Sections follow
  std::array<char, 8> magic = kMagic;
  uint32_t version = kVersion;
  uint32_t sections = 0;
  uint64_t file_bytes = 0;
  uint64_t fingerprint = 0;  // of the list of images
  uint64_t checksum = 0;     // Hash64 of this header, with 0 here, and of the Sections after it
};
static_assert(sizeof(Header) == 40);

// A reader skips kinds that it does not know.
enum SectionKind : uint32_t {  // 1 was used by version 1
  kCropIndexes = 2,  // crop indexes in the order of the images, each with its own checksum
  kFolders = 3,      // ImageList::Folder
  kPaths = 4,        // ImageList::paths
  kFiles = 5,        // ImageList::File
  kNames = 6,        // ImageList::names
  kFacts = 7,        // Facts of each file
  kSkipped = 8,      // ImageList::skipped, packed
};

struct Section {
  uint32_t kind = 0;
  uint32_t unused = 0;
  uint64_t offset = 0;  // in the file
  uint64_t bytes = 0;
  uint64_t checksum = 0;  // 0 for kCropIndexes, otherwise Checksum
};
static_assert(sizeof(Section) == 32);

// What was known about an image when the index was made.
struct Facts {
  uint64_t record_end =
      0;  // end of its crop index in kCropIndexes; it begins at the previous one's end
  uint32_t file_bytes = 0;  // 2^32 − 1: as many or more, or unknown
  uint32_t width = 0;       // as stored; 0: unknown
  uint32_t height = 0;
  uint8_t orientation = 1;  // the EXIF tag: 1 to 8
  uint8_t format = 0;       // ImageFormat of transforms/decode/format.h; 0: unknown
  uint16_t unused = 0;
};
static_assert(sizeof(Facts) == 24);

// Sections are read and checked in pieces of this size: while they are in the cache, and so that
// errors are found before more memory is taken. A multiple of every column's element size.
inline constexpr size_t kPieceBytes = 120 << 13;

// The limit of kSkipped: a path and some fifty extensions are far below it.
inline constexpr uint64_t kMaxSkipped = 64 << 10;

// The bytes of one of these structs, as in the file. Writable if the struct is.
template <typename T>
auto BytesOf(T& value) {
  using Byte = std::conditional_t<std::is_const_v<T>, const uint8_t, uint8_t>;
  return std::span<Byte>(reinterpret_cast<Byte*>(&value), sizeof(T));
}

// The checksum of a section: Hash64 of each piece, seeded with the previous one's.
inline uint64_t Checksum(std::span<const uint8_t> section) {
  uint64_t hash = 0;
  while (!section.empty()) {
    const std::span<const uint8_t> piece = section.first(std::min(section.size(), kPieceBytes));
    hash = Hash64(piece, hash);
    section = section.subspan(piece.size());
  }
  return hash;
}

}  // namespace stoker::dataset_index
