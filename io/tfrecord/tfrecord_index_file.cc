#include "io/tfrecord/tfrecord_index_file.h"

#include <array>
#include <utility>

#include "core/result/try.h"
#include "io/shards/shard_index_file.h"

namespace stoker {

namespace {

constexpr std::array<char, 8> kTfRecordMagic = {'S', 'T', 'K', 'T', 'F', 'R', 'I', 'X'};

// Returns whether records with these ends fill a file of this size.
bool FillFile(std::span<const uint64_t> ends, uint64_t bytes) {
  uint64_t begin = 0;
  for (const uint64_t end : ends) {
    if (end > bytes || end < begin || end - begin < kTfRecordAround) return false;
    begin = end;
  }
  return begin == bytes;
}

std::optional<IndexedTfRecords> ReadIndexFiles(const InputFile& file,
                                               const std::vector<std::string>& features,
                                               const FileStamp& stamp) {
  auto records = UnpackedShardIndex(
      file, kTfRecordMagic, stamp, "",
      [&](std::span<const uint8_t> bytes) { return UnpackTfRecordIndex(bytes, stamp); });
  if (!records) return std::nullopt;
  IndexedTfRecords all{.records = *std::move(records)};
  for (const std::string& feature : features) {
    auto lists = ReadTfRecordListsIndex(file, stamp, all.records.ends.size(), feature);
    if (!lists) return std::nullopt;
    all.lists.push_back(*std::move(lists));
  }
  return all;
}

Result<IndexedTfRecords> ScanRecords(const InputFile& file,
                                     const std::vector<std::string>& features, FileStamp& stamp) {
  IndexedTfRecords all;
  ASSIGN_OR_RETURN(all.records, ReadTfRecords(file, stamp));
  if (features.empty()) return all;
  ASSIGN_OR_RETURN(all.lists, ReadTfRecordLists(file, all.records.ends, features));
  ASSIGN_OR_RETURN(const FileStamp after, file.Stamp());
  if (!stamp.is_written(after)) return all;
  return Error{.code = Code::kDataLoss,
               .cause = "the file changed while it was read",
               .file = file.path(),
               .offset = 0,
               .advice = "Open it once it is complete"};
}

}  // namespace

std::vector<uint8_t> PackTfRecordIndex(const TfRecords& all, const FileStamp& stamp) {
  return PackShardIndex(kTfRecordMagic, stamp, {all.ends.size(), all.content},
                        {BytesOfColumn(all.ends)});
}

std::optional<TfRecords> UnpackTfRecordIndex(std::span<const uint8_t> file,
                                             const FileStamp& stamp) {
  std::span<const uint8_t> columns;
  const auto numbers = UnpackShardIndex(file, kTfRecordMagic, stamp, columns);
  if (!numbers) return std::nullopt;
  const auto [count, content, unused] = *numbers;
  if (unused != 0 || columns.size() % sizeof(uint64_t) != 0) return std::nullopt;
  if (count != columns.size() / sizeof(uint64_t)) return std::nullopt;
  TfRecords all{.ends = {}, .content = content};
  TakeColumn(columns, count, all.ends);
  if (!FillFile(all.ends, stamp.bytes)) return std::nullopt;
  return all;
}

Result<IndexedTfRecords> IndexTfRecords(const std::string& path,
                                        const std::vector<std::string>& features,
                                        ObjectVersion& version) {
  return ContentOfShard(
      path, version,
      [&](const InputFile& file, const FileStamp& stamp) {
        return ReadIndexFiles(file, features, stamp);
      },
      [&](const InputFile& file, FileStamp& stamp) { return ScanRecords(file, features, stamp); },
      [&](const IndexedTfRecords& all, const FileStamp& stamp) {
        (void)WriteShardIndex(path, PackTfRecordIndex(all.records, stamp));
        for (size_t i = 0; i < features.size(); ++i) {
          (void)WriteTfRecordListsIndex(path, all.lists[i], stamp, features[i]);
        }
      });
}

}  // namespace stoker
