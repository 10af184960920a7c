// TfRecordLists: the values that one feature has in all records of a TFRecord file.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/result/result.h"
#include "io/files/input_file.h"
#include "io/tfrecord/tf_example.h"

namespace stoker {

struct TfRecordLists {
  static constexpr uint64_t kMostBytes = (1 << 30) - (1 << 20);  // so that an index file has them

  std::vector<uint8_t> kinds;  // by record: a TfFeature::Kind
  std::vector<uint64_t> ends;  // by record, in `bytes`
  std::vector<uint8_t> bytes;  // encoded lists, as in the Examples

  // Returns the feature of a record, without a name; valid as long as this object lives.
  TfFeature operator[](size_t record) const;
};

// Reads all records of a file, whose `ends` are known, and takes the lists of these features.
// Errors name the file and the record's offset: those of DataOfTfRecord and FindFeatures,
// ResourceExhausted (a record of 256 MiB, or lists larger than kMostBytes).
Result<std::vector<TfRecordLists>> ReadTfRecordLists(const InputFile& file,
                                                     std::span<const uint64_t> ends,
                                                     const std::vector<std::string>& features);

// PackTfRecordLists returns the bytes of the index file of one feature (shard_index_file.h).
// UnpackTfRecordLists returns nullopt if they are damaged, of another version, not valid for
// `stamp`, or have another number of records.
std::vector<uint8_t> PackTfRecordLists(const TfRecordLists& lists, const FileStamp& stamp);
std::optional<TfRecordLists> UnpackTfRecordLists(std::span<const uint8_t> file,
                                                 const FileStamp& stamp, uint64_t records);

// ReadTfRecordListsIndex returns the content of a feature's index file; nullopt if there is none,
// or for UnpackTfRecordLists's reasons. WriteTfRecordListsIndex replaces it.
std::optional<TfRecordLists> ReadTfRecordListsIndex(const InputFile& file, const FileStamp& stamp,
                                                    uint64_t records, const std::string& feature);
Status WriteTfRecordListsIndex(const std::string& path, const TfRecordLists& lists,
                               const FileStamp& stamp, const std::string& feature);

}  // namespace stoker
