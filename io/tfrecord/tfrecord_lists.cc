#include "io/tfrecord/tfrecord_lists.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/hash/sha256.h"
#include "core/result/try.h"
#include "io/shards/shard_index_file.h"
#include "io/tfrecord/tfrecord_records.h"

namespace stoker {

namespace {

constexpr std::array<char, 8> kTfListsMagic = {'S', 'T', 'K', 'T', 'F', 'R', 'L', 'X'};

// Reads records from front to back, several at once.
class RecordWindow {
 public:
  RecordWindow(const InputFile& file, uint64_t file_bytes) : file_(file), file_bytes_(file_bytes) {}

  // Returns the bytes [begin, end) of the file, fewer if it is shorter; valid until the next call.
  Result<std::span<const uint8_t>> Bytes(uint64_t begin, uint64_t end) {
    if (begin < begin_ || end > begin_ + bytes_.size()) {
      constexpr uint64_t kTogether = 4 << 20;
      const uint64_t ahead = std::min(begin + kTogether, file_bytes_);
      begin_ = begin;
      bytes_.resize(std::max(end, ahead) - begin);
      ASSIGN_OR_RETURN(const size_t got, file_.ReadAt(begin, bytes_));
      bytes_.resize(got);
    }
    const std::span<const uint8_t> from = std::span(bytes_).subspan(begin - begin_);
    return from.first(std::min<size_t>(end - begin, from.size()));
  }

 private:
  const InputFile& file_;
  const uint64_t file_bytes_;
  uint64_t begin_ = 0;  // of `bytes_` in the file
  std::vector<uint8_t> bytes_;
};

// Adds the features of one record to their lists.
Status AddLists(std::span<const uint8_t> record, const std::vector<std::string>& features,
                std::vector<TfRecordLists>& all) {
  std::vector<TfFeature> found(features.size());
  ASSIGN_OR_RETURN(const auto data, DataOfTfRecord(record));
  TRY(FindFeatures(data, features, found));
  for (size_t i = 0; i < features.size(); ++i) {
    TfRecordLists& lists = all[i];
    if (found[i].list.size() > TfRecordLists::kMostBytes - lists.bytes.size()) {
      return Error{.code = Code::kResourceExhausted,
                   .cause = "the values of feature '" + features[i] + "' take more than " +
                            std::to_string(TfRecordLists::kMostBytes) + " bytes of this file",
                   .advice = "Write smaller files, or leave the column out",
                   .detail = Error::Detail::kOverLimits};
    }
    lists.kinds.push_back(static_cast<uint8_t>(found[i].kind));
    lists.bytes.insert(lists.bytes.end(), found[i].list.begin(), found[i].list.end());
    lists.ends.push_back(lists.bytes.size());
  }
  return {};
}

// Returns the name of a feature's index: any text may be the feature's own.
std::string PartOfFeature(const std::string& feature) {
  return Hexadecimal(Sha256(feature)).substr(0, 32);
}

}  // namespace

TfFeature TfRecordLists::operator[](size_t record) const {
  const uint64_t begin = record == 0 ? 0 : ends[record - 1];
  return {.name = {},
          .kind = static_cast<TfFeature::Kind>(kinds[record]),
          .list = std::span(bytes).subspan(begin, ends[record] - begin)};
}

Result<std::vector<TfRecordLists>> ReadTfRecordLists(const InputFile& file,
                                                     std::span<const uint64_t> ends,
                                                     const std::vector<std::string>& features) {
  constexpr uint64_t kMostRecord = 256 << 20;
  std::vector<TfRecordLists> all(features.size());
  RecordWindow window(file, ends.empty() ? 0 : ends.back());
  uint64_t begin = 0;
  for (const uint64_t end : ends) {
    const auto add = [&]() -> Status {
      if (end - begin > kMostRecord) {
        return Error{.code = Code::kResourceExhausted,
                     .cause = "a record has " + std::to_string(end - begin) + " bytes",
                     .detail = Error::Detail::kOverLimits};
      }
      ASSIGN_OR_RETURN(const auto record, window.Bytes(begin, end));
      return AddLists(record, features, all);
    };
    if (Status added = add(); !added.ok()) {
      Error error = std::move(added).error();
      error.file = file.path();
      error.offset = begin;
      return error;
    }
    begin = end;
  }
  return all;
}

std::vector<uint8_t> PackTfRecordLists(const TfRecordLists& lists, const FileStamp& stamp) {
  return PackShardIndex(
      kTfListsMagic, stamp, {lists.ends.size(), lists.bytes.size()},
      {BytesOfColumn(lists.ends), BytesOfColumn(lists.kinds), BytesOfColumn(lists.bytes)});
}

std::optional<TfRecordLists> UnpackTfRecordLists(std::span<const uint8_t> file,
                                                 const FileStamp& stamp, uint64_t records) {
  std::span<const uint8_t> columns;
  const auto numbers = UnpackShardIndex(file, kTfListsMagic, stamp, columns);
  if (!numbers) return std::nullopt;
  const auto [count, bytes, unused] = *numbers;
  if (unused != 0 || count != records || count > columns.size() || bytes > columns.size()) {
    return std::nullopt;
  }
  if (count * (sizeof(uint64_t) + 1) + bytes != columns.size()) return std::nullopt;
  TfRecordLists lists;
  TakeColumn(columns, count, lists.ends);
  TakeColumn(columns, count, lists.kinds);
  TakeColumn(columns, bytes, lists.bytes);
  constexpr auto kLast = static_cast<uint8_t>(TfFeature::Kind::kIntegers);
  const bool are_kinds =
      std::ranges::all_of(lists.kinds, [](uint8_t kind) { return kind <= kLast; });
  const bool end = lists.ends.empty() ? bytes == 0 : lists.ends.back() == bytes;
  if (!are_kinds || !end || !std::ranges::is_sorted(lists.ends)) return std::nullopt;
  return lists;
}

std::optional<TfRecordLists> ReadTfRecordListsIndex(const InputFile& file, const FileStamp& stamp,
                                                    uint64_t records, const std::string& feature) {
  return UnpackedShardIndex(
      file, kTfListsMagic, stamp, PartOfFeature(feature),
      [&](std::span<const uint8_t> index) { return UnpackTfRecordLists(index, stamp, records); });
}

Status WriteTfRecordListsIndex(const std::string& path, const TfRecordLists& lists,
                               const FileStamp& stamp, const std::string& feature) {
  return WriteShardIndex(path, PackTfRecordLists(lists, stamp), PartOfFeature(feature));
}

}  // namespace stoker
