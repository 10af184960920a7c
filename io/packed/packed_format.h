// The format of a packed set's index and shards, which are files of sections (section_format.h).
//
// The index, index.stoker, has the list of the photographs (image_list_sections.h), where each is
// stored, and the shards. Opening a set reads only it and the shards' headers.
//
// A shard, NNNNN.stoker, has records and a description of each, so that the index can be made from
// the shards alone. Shards are never changed. A record is the stored image and the CRC-32C of these
// bytes (4 bytes). The image is the file as it was, or a packed JPEG (transforms/packed) or PNG
// (transforms/png/packed).
//
// Samples may have further images, such as masks. Index and shards then have a list of the fields,
// and version 3; a shard has the records of each sample one after another, in the order of the
// fields. There are no classes, and samples are sorted bytewise by the paths of their first images.
// A mask may be packed (transforms/mask): its record is that, its CRC-32C, and the file as it was.
// So may that of a packed PNG be. An index or shard that has packed PNGs has version 4.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/batch/row_parts.h"
#include "io/files/section_file.h"

namespace stoker::packed_set {

// `stoker pack` cannot continue a set of another version.
inline constexpr char kOtherVersion[] =
    "Pack the photographs again into a new folder, or use the version of stoker that packed them";
inline constexpr SectionFileKind kIndexFile = {
    .magic = {'S', 'T', 'K', 'P', 'A', 'C', 'K', 'D'},
    .version = 2,
    .newest = 4,
    .article = "a",
    .name = "packed set's index",
    .remake = "Run `stoker pack` again: it rebuilds the index from the shards",
    .other_version = kOtherVersion,
    .give = "Give the folder that `stoker pack` made"};
inline constexpr SectionFileKind kShardFile = {
    .magic = {'S', 'T', 'K', 'S', 'H', 'A', 'R', 'D'},
    .version = 2,
    .newest = 4,
    .article = "a",
    .name = "packed set's shard",
    .remake =
        "Restore the shard, or remove it and run `stoker pack` again, which packs again what "
        "was in it",
    .other_version = kOtherVersion,
    .give = "Give the folder that `stoker pack` made"};

// Returns the kind with the version of a file whose samples have several images, or packed PNGs.
constexpr SectionFileKind OfVersion(SectionFileKind kind, bool has_pieces, bool has_pngs) {
  kind.version = has_pngs ? 4 : has_pieces ? 3 : 2;
  return kind;
}

inline constexpr char kIndexName[] = "index.stoker";
// "00042.stoker"
std::string ShardName(uint32_t shard);

inline constexpr uint32_t kMaxShards = 1 << 20;
inline constexpr uint32_t kShardShift = 40;  // of Sample::place
inline constexpr uint64_t kMaxShardBytes = uint64_t{1} << kShardShift;
inline constexpr uint64_t kCrcBytes = 4;
inline constexpr uint64_t kMaxImageBytes = ~uint32_t{0};

// How a file is stored.
enum class Form : uint8_t {
  kFile = 0,
  kPackedJpeg = 1,
  kPackedMask = 2,  // and the file
  kPackedPng = 3,
  kPackedPngAndFile = 4,
  kEqualPng = 5,  // a packed PNG that is not restored to the byte, only to an equal PNG
};

struct Sample {
  uint64_t place = 0;       // the shard's number << 40, and the record's offset in it
  uint32_t bytes = 0;       // of the stored image, without its CRC
  uint32_t file_bytes = 0;  // of the file
  uint32_t file_crc = 0;    // its CRC-32C
  uint32_t width = 0;       // as stored; 0 means unknown
  uint32_t height = 0;
  uint8_t orientation = 1;  // the EXIF tag: 1 to 8
  uint8_t format = 0;       // ImageFormat of the file (transforms/decode/format.h); 0 means unknown
  Form form = Form::kFile;
  uint8_t mcu_height = 0;  // of a packed JPEG: rows of pixels in a row of MCUs; 0 means its parts
                           // are not known
  RowParts parts;          // of a packed JPEG

  uint32_t shard() const { return static_cast<uint32_t>(place >> kShardShift); }
  uint64_t offset() const { return place & (kMaxShardBytes - 1); }
  bool is_packed_png() const {
    return form == Form::kPackedPng || form == Form::kPackedPngAndFile || form == Form::kEqualPng;
  }
  bool has_file() const { return form == Form::kPackedMask || form == Form::kPackedPngAndFile; }
  // The bytes of its record: the stored image with its CRC, and the file if it has that, too.
  uint64_t record_bytes() const { return bytes + kCrcBytes + (has_file() ? file_bytes : 0); }
  bool IsSound() const {
    constexpr uint32_t kMaxHeight = 65535;  // of a JPEG
    return mcu_height == 0 || (form == Form::kPackedJpeg && height != 0 && height <= kMaxHeight &&
                               parts.FitsIn(bytes));
  }
};
static_assert(sizeof(Sample) == 64);

// One of a set's shards, by its number.
struct Shard {
  uint64_t bytes = 0;        // of its file; 0 means there is no shard of this number
  uint64_t fingerprint = 0;  // of its entries and their paths
};
static_assert(sizeof(Shard) == 16);

// A shard's description of a record. Entries are in the order of the records.
struct Entry {
  Sample sample;
  int64_t changed_ns = 0;   // as FileStamp's; kUnknownTime if the file was not at rest
  uint32_t path_bytes = 0;  // of its path below the folder; paths lie one after another
  uint32_t piece = 0;       // its place among the images of its sample
};
static_assert(sizeof(Entry) == 80);

// A field of a set whose samples have several images. The first one is an image.
struct PieceField {
  std::array<char, 56> name{};  // ends with a NUL
  uint32_t mask_bits = 0;       // of a mask's rows, 8 or 16; 0 for an image
  uint16_t fill = 0;            // Field::fill of a mask
  uint16_t unused = 0;

  friend bool operator==(const PieceField&, const PieceField&) = default;
};
static_assert(sizeof(PieceField) == 64);
inline constexpr size_t kMaxPieces = 64;

}  // namespace stoker::packed_set
