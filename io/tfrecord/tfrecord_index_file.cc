#include "io/tfrecord/tfrecord_index_file.h"

#include <array>
#include <new>
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

std::optional<TfRecords> ReadTfRecordIndex(const InputFile& records, const FileStamp& stamp) {
  const auto file = ReadShardIndex(records, kTfRecordMagic, stamp);
  if (!file) return std::nullopt;
  return UnpackTfRecordIndex(*file, stamp);
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

bool SignTfRecordIndex(std::span<uint8_t> file, const FileStamp& stamp) {
  return SignShardIndex(file, kTfRecordMagic, stamp);
}

Result<TfRecords> IndexTfRecords(const std::string& path, ObjectVersion& version) {
  return ContentOfShard(
      path, version, &ReadTfRecordIndex,
      [](const InputFile& file, FileStamp& stamp) { return ReadTfRecords(file, stamp); },
      [&](const TfRecords& records, const FileStamp& stamp) {
        (void)WriteShardIndex(path, PackTfRecordIndex(records, stamp));
      });
}

}  // namespace stoker
