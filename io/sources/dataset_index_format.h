// The bytes of a dataset's index file, which dataset_index.cc reads and dataset_index_writer.cc
// writes. Numbers are little-endian. docs/jpeg.md, "A dataset's file", has them as a table.
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

struct Header {  // at the start of the file; `sections` of Section follow
  std::array<char, 8> magic = kMagic;
  uint32_t version = kVersion;
  uint32_t sections = 0;
  uint64_t file_bytes = 0;
  uint64_t fingerprint = 0;  // of the list of images
  uint64_t checksum = 0;  // Hash64 of this header, with 0 here, and of the sections' list behind it
};
static_assert(sizeof(Header) == 40);

// Others may follow: a reader passes over those that it does not know.
enum SectionKind : uint32_t {  // 1 was version 1's
  kCropIndexes = 2,  // crop indexes in the order of the images, each with a checksum of its own
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
  uint64_t checksum = 0;  // of kCropIndexes 0, of others Checksum
};
static_assert(sizeof(Section) == 32);

// What was known of an image when the index was made.
struct Facts {
  uint64_t record_end = 0;  // of its crop index, in kCropIndexes: it begins where that before ends
  uint32_t file_bytes = 0;  // 2^32 − 1: as many or more, or unknown
  uint32_t width = 0;       // as stored; 0: unknown
  uint32_t height = 0;
  uint8_t orientation = 1;  // the EXIF tag: 1 to 8
  uint8_t format = 0;       // ImageFormat of transforms/decode/format.h; 0: unknown
  uint16_t unused = 0;
};
static_assert(sizeof(Facts) == 24);

// Sections are read and checked so many bytes at a time: while they are in the cache, and so that
// what is wrong is noticed before more memory is taken. A multiple of every column's element.
inline constexpr size_t kPieceBytes = 120 << 13;

// Of kSkipped: a path and some fifty extensions are far below it.
inline constexpr uint64_t kMostSkipped = 64 << 10;

// Of a struct of these, as they lie in the file. Writable where the struct is.
template <typename T>
auto BytesOf(T& value) {
  using Byte = std::conditional_t<std::is_const_v<T>, const uint8_t, uint8_t>;
  return std::span<Byte>(reinterpret_cast<Byte*>(&value), sizeof(T));
}

// Of the pieces of a section, one after the other: Hash64 of each, with the one before as its seed.
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
