// A TFRecord file's index file (shard_index_file.h): where its records lie.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"
#include "io/objects/object_version.h"
#include "io/sources/input_file.h"
#include "io/sources/tfrecord_records.h"

namespace stoker {

// The bytes of an index file. Unpack returns nullopt if they are damaged, of another version, or do
// not hold for `stamp`: whatever they are, records that are returned fill the file without gaps.
std::vector<uint8_t> PackTfRecordIndex(const TfRecords& all, const FileStamp& stamp);
std::optional<TfRecords> UnpackTfRecordIndex(std::span<const uint8_t> file, const FileStamp& stamp);

// SignShardIndex for such a file.
bool SignTfRecordIndex(std::span<uint8_t> file, const FileStamp& stamp);

// The records of a file: by its index file or, if that is missing or does not hold, by their
// headers; then the index file is written, if that is possible. Of an object, `version` is set. The
// errors are ReadTfRecords'.
Result<TfRecords> IndexTfRecords(const std::string& path, ObjectVersion& version);

}  // namespace stoker
