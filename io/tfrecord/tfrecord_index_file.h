// The index file of a TFRecord file (shard_index_file.h): the positions of its records.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/result/result.h"
#include "io/files/input_file.h"
#include "io/remote/object_version.h"
#include "io/tfrecord/tfrecord_records.h"

namespace stoker {

// PackTfRecordIndex returns the bytes of an index file. UnpackTfRecordIndex returns nullopt if they
// are damaged, of another version, or not valid for `stamp`. For any bytes, the records that
// are returned fill the file without gaps.
std::vector<uint8_t> PackTfRecordIndex(const TfRecords& all, const FileStamp& stamp);
std::optional<TfRecords> UnpackTfRecordIndex(std::span<const uint8_t> file, const FileStamp& stamp);

// SignShardIndex for an index file of records.
bool SignTfRecordIndex(std::span<uint8_t> file, const FileStamp& stamp);

// Returns the records of a file: from its index file or, if that is missing or not valid, from
// their headers; then the index file is written, if that is possible. For an object, `version` is
// set. Errors: those of ReadTfRecords.
Result<TfRecords> IndexTfRecords(const std::string& path, ObjectVersion& version);

}  // namespace stoker
