// Writes the shards of a packed set (packed_format.h), and reads their entries.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result/result.h"
#include "io/files/section_file.h"
#include "io/packed/packed_format.h"
#include "io/source/path_table.h"

namespace stoker {

// A shard's records, in their order.
struct PackedShard {
  uint32_t number = 0;
  packed_set::Shard shard;
  std::vector<packed_set::PieceField> fields;  // empty if samples have one image
  std::vector<packed_set::Entry> entries;
  PathTable paths;  // below the folder

  size_t pieces() const { return fields.empty() ? 1 : fields.size(); }  // of a sample
};

// Reads the entries and checks every byte but the records'. For any bytes, each record
// lies in the file, each path is one of an image below a folder (no part of it is empty,
// hidden, "." or ".."), and the pieces of each sample follow one another. Errors: those of
// SectionFile, DataLoss.
Result<PackedShard> ReadPackedShard(const std::string& path, uint32_t number);

// Whether `path` is one that a set's photograph may have: relative, without a part that is empty or
// hidden, and without a NUL.
bool IsPackedPath(std::string_view path);

// Whether a record's checksum is right. Precondition: it has at least kCrcBytes.
bool IsSoundRecord(std::span<const uint8_t> record);

// Writes one shard through a SectionFileWriter: it appears as a whole or not at all.
class PackedShardWriter {
 public:
  // `fields`: as those of PackedShard.
  static Result<PackedShardWriter> Create(const std::string& path, uint32_t number,
                                          std::vector<packed_set::PieceField> fields = {});

  uint64_t bytes() const { return writer_.written(); }  // of the records so far

  // Appends the record of the next piece. `entry` describes the file; its place, `bytes`,
  // `path_bytes` and `piece` are set here. `file`: that of a packed mask. Preconditions:
  // IsPackedPath(path), image.size() <= kMaxImageBytes.
  Status Add(packed_set::Entry entry, std::string_view path, std::span<const uint8_t> image,
             std::span<const uint8_t> file = {});

  // Puts the shard in place, synced to disk. Precondition: it has a sample, and all pieces of each.
  Status Commit();

 private:
  PackedShardWriter(SectionFileWriter writer, uint32_t number,
                    std::vector<packed_set::PieceField> fields)
      : writer_(std::move(writer)), number_(number), fields_(std::move(fields)) {}

  SectionFileWriter writer_;
  uint32_t number_;
  std::vector<packed_set::PieceField> fields_;
  std::vector<packed_set::Entry> entries_;
  std::string paths_;
};

}  // namespace stoker
