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
#include "io/tfrecord/tfrecord_lists.h"
#include "io/tfrecord/tfrecord_records.h"

namespace stoker {

// PackTfRecordIndex returns the bytes of an index file. UnpackTfRecordIndex returns nullopt if they
// are damaged, of another version, or not valid for `stamp`. For any bytes, the records that
// are returned fill the file without gaps.
std::vector<uint8_t> PackTfRecordIndex(const TfRecords& all, const FileStamp& stamp);
std::optional<TfRecords> UnpackTfRecordIndex(std::span<const uint8_t> file, const FileStamp& stamp);

// The records of a file, and the values of some of their features.
struct IndexedTfRecords {
  TfRecords records;
  std::vector<TfRecordLists> lists{};  // by feature
};

// Returns the records of a file: from its index file or, if that is missing or not valid, from
// their headers; then the index file is written, if that is possible. The values of each of the
// features are in an index file of their own; if one is missing, all records are read. For an
// object, `version` is set. Errors: those of ReadTfRecords, and of ReadTfRecordLists.
Result<IndexedTfRecords> IndexTfRecords(const std::string& path,
                                        const std::vector<std::string>& features,
                                        ObjectVersion& version);

}  // namespace stoker
