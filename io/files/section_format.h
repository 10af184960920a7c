// The format of files that consist of sections: the index of a folder, and the index and the shards
// of a packed set. section_file.cc reads it and section_file_writer.cc writes it. Numbers are
// little-endian.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "core/hash/hash.h"

namespace stoker::sections {

static_assert(std::endian::native == std::endian::little);

struct Header {  // at the start of the file; `sections` Sections follow
  std::array<char, 8> magic{};
  uint32_t version = 0;
  uint32_t sections = 0;
  uint64_t file_bytes = 0;
  uint64_t fingerprint = 0;  // of the content, as defined by the kind of file
  uint64_t checksum = 0;     // Hash64 of this header, with 0 here, and of the Sections after it
};
static_assert(sizeof(Header) == 40);

// A reader skips kinds that it does not know.
enum Kind : uint32_t {   // 1 was used by version 1 of a folder's index
  kCropIndexes = 2,      // crop indexes in the order of the images, each with its own checksum
  kFolders = 3,          // ImageList::Folder
  kPaths = 4,            // ImageList::paths
  kFiles = 5,            // ImageList::File
  kNames = 6,            // ImageList::names
  kFacts = 7,            // Facts of each file (dataset_index_format.h)
  kSkipped = 8,          // ImageList::skipped, packed
  kShards = 9,           // Shards of a packed set (packed_format.h)
  kSamples = 10,         // its Samples
  kRecords = 11,         // of a shard: the stored images, each with its own checksum
  kEntries = 12,         // of a shard: an Entry for each of them
  kEntryPaths = 13,      // of a shard: their paths
  kPieceFields = 14,     // PieceFields of a packed set, and of its shards
  kFurtherSamples = 15,  // Samples of a packed set's further pieces
  kFurtherPaths = 16,    // their paths
  kEnd
};

struct Section {
  uint32_t kind = 0;
  uint32_t unused = 0;
  uint64_t offset = 0;  // in the file
  uint64_t bytes = 0;
  uint64_t checksum = 0;  // 0 for those whose parts have their own, otherwise Checksum
};
static_assert(sizeof(Section) == 32);

// Sections are read and checked in pieces of this size, so that they are still in the CPU's cache,
// and errors are found before more memory is taken. A multiple of every column's element size.
inline constexpr size_t kPieceBytes = 120 << 13;

// The bytes of one of these structs, as in the file. Writable if the struct is.
template <typename T>
auto BytesOf(T& value) {
  using Byte = std::conditional_t<std::is_const_v<T>, const uint8_t, uint8_t>;
  return std::span<Byte>(reinterpret_cast<Byte*>(&value), sizeof(T));
}

// The bytes of a column, as in the file.
template <typename Column>
std::span<const uint8_t> ColumnBytes(const Column& column) {
  return {reinterpret_cast<const uint8_t*>(column.data()), column.size() * sizeof(column[0])};
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

}  // namespace stoker::sections
