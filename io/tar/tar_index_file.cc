#include "io/tar/tar_index_file.h"

#include <array>
#include <cstddef>

#include "io/shards/shard_index_file.h"

namespace stoker {

namespace {

constexpr std::array<char, 8> kTarMagic = {'S', 'T', 'K', 'T', 'A', 'R', 'I', 'X'};

// Returns whether columns of these lengths have this size together.
bool HaveSize(const std::array<uint64_t, 3>& numbers, uint64_t bytes) {
  const auto& [members, labels, name_bytes] = numbers;
  if (members > bytes || labels > bytes || name_bytes > bytes) return false;  // no sum overflows
  return members * sizeof(TarMembers::Member) + labels * sizeof(int64_t) + name_bytes +
             sizeof(uint64_t) ==
         bytes;
}

// Returns whether the members follow each other in the archive and have names, and whether each
// label member has a label; bad_label must be one of them.
bool AreSound(const TarMembers& all, uint64_t archive_bytes) {
  uint64_t free = 0, name_at = 0, labels = 0;
  for (size_t i = 0; i < all.members.size(); ++i) {
    const auto& [offset, length, name_end] = all.members[i];
    if (offset % kTarBlock != 0 || offset < free + kTarBlock || offset > archive_bytes) {
      return false;
    }
    if (length > archive_bytes - offset) return false;
    if (name_end <= name_at || name_end > all.names.size()) return false;
    if (name_end - name_at > kLongestMemberName) return false;
    free = offset + length;
    name_at = name_end;
    if (IsLabelMember(all.NameOf(i))) ++labels;
  }
  if (name_at != all.names.size() || labels != all.labels.size()) return false;
  return all.bad_label == TarMembers::kNone ||
         (all.bad_label < all.members.size() && IsLabelMember(all.NameOf(all.bad_label)));
}

}  // namespace

std::vector<uint8_t> PackTarIndex(const TarMembers& all, const FileStamp& stamp) {
  return PackShardIndex(kTarMagic, stamp, {all.members.size(), all.labels.size(), all.names.size()},
                        {BytesOfColumn(all.members), BytesOfColumn(all.labels),
                         BytesOfColumn(std::span(&all.bad_label, 1)), BytesOfColumn(all.names)});
}

std::optional<TarMembers> UnpackTarIndex(std::span<const uint8_t> file, const FileStamp& stamp) {
  std::span<const uint8_t> columns;
  const auto numbers = UnpackShardIndex(file, kTarMagic, stamp, columns);
  if (!numbers || !HaveSize(*numbers, columns.size())) return std::nullopt;
  TarMembers all;
  TakeColumn(columns, (*numbers)[0], all.members);
  TakeColumn(columns, (*numbers)[1], all.labels);
  std::vector<uint64_t> bad_label;
  TakeColumn(columns, 1, bad_label);
  all.bad_label = bad_label[0];
  TakeColumn(columns, (*numbers)[2], all.names);
  if (!AreSound(all, stamp.bytes)) return std::nullopt;
  return all;
}

std::optional<TarMembers> ReadTarIndex(const InputFile& archive, const FileStamp& stamp) {
  return UnpackedShardIndex(archive, kTarMagic, stamp, "", [&](std::span<const uint8_t> file) {
    return UnpackTarIndex(file, stamp);
  });
}

Status WriteTarIndex(const std::string& archive, const TarMembers& all, const FileStamp& stamp) {
  return WriteShardIndex(archive, PackTarIndex(all, stamp));
}

}  // namespace stoker
