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
  std::vector<packed_set::Entry> entries;
  PathTable paths;  // below the folder
};

// Reads the entries and checks every byte but the records'. For any bytes, each record
// lies in the file, and each path is one of an image below a folder (no part of it is empty,
// hidden, "." or ".."). Errors: those of SectionFile, DataLoss.
Result<PackedShard> ReadPackedShard(const std::string& path, uint32_t number);

// Whether `path` is one that a set's photograph may have: relative, without a part that is empty or
// hidden, and without a NUL.
bool IsPackedPath(std::string_view path);

// Whether a record's checksum is right. Precondition: it has at least kCrcBytes.
bool IsSoundRecord(std::span<const uint8_t> record);

// Writes one shard through a SectionFileWriter: it appears as a whole or not at all.
class PackedShardWriter {
 public:
  static Result<PackedShardWriter> Create(const std::string& path, uint32_t number);

  uint64_t bytes() const { return writer_.written(); }  // of the records so far

  // Appends a record. `entry` describes the file; its place, `bytes` and `path_bytes` are set here.
  // Preconditions: IsPackedPath(path), image.size() <= kMaxImageBytes.
  Status Add(packed_set::Entry entry, std::string_view path, std::span<const uint8_t> image);

  // Puts the shard in place, synced to disk. Precondition: it has a record.
  Status Commit();

 private:
  PackedShardWriter(SectionFileWriter writer, uint32_t number)
      : writer_(std::move(writer)), number_(number) {}

  SectionFileWriter writer_;
  uint32_t number_;
  std::vector<packed_set::Entry> entries_;
  std::string paths_;
};

}  // namespace stoker
