#include "io/tar/tar_text_file.h"

#include <array>
#include <cstddef>

#include "io/shards/shard_index_file.h"

namespace stoker {

namespace {

constexpr std::array<char, 8> kTextMagic = {'S', 'T', 'K', 'T', 'A', 'R', 'T', 'X'};

// Returns whether the texts have the lengths of the members with this extension.
bool AreTheirTexts(const TarMembers::Texts& texts, const TarMembers& all,
                   const std::string& extension) {
  size_t text = 0;
  uint64_t begin = 0;
  for (size_t i = 0; i < all.members.size(); ++i) {
    if (!HasExtension(all.NameOf(i), extension)) continue;
    if (text == texts.ends.size() || texts.ends[text] < begin) return false;
    if (texts.ends[text] - begin != all.members[i].length) return false;
    begin = texts.ends[text++];
  }
  return text == texts.ends.size() && begin == texts.bytes.size();
}

}  // namespace

std::vector<uint8_t> PackTarTexts(const TarMembers::Texts& texts, const FileStamp& stamp) {
  return PackShardIndex(kTextMagic, stamp, {texts.ends.size(), texts.bytes.size()},
                        {BytesOfColumn(texts.ends), BytesOfColumn(texts.bytes)});
}

std::optional<TarMembers::Texts> UnpackTarTexts(std::span<const uint8_t> file,
                                                const FileStamp& stamp, const TarMembers& all,
                                                const std::string& extension) {
  std::span<const uint8_t> columns;
  const auto numbers = UnpackShardIndex(file, kTextMagic, stamp, columns);
  if (!numbers) return std::nullopt;
  const auto [count, bytes, unused] = *numbers;
  if (unused != 0 || count > columns.size() || bytes > columns.size()) return std::nullopt;
  if (count * sizeof(uint64_t) + bytes != columns.size()) return std::nullopt;
  TarMembers::Texts texts;
  TakeColumn(columns, count, texts.ends);
  TakeColumn(columns, bytes, texts.bytes);
  if (!AreTheirTexts(texts, all, extension)) return std::nullopt;
  return texts;
}

std::optional<TarMembers::Texts> ReadTarTexts(const InputFile& archive, const FileStamp& stamp,
                                              const TarMembers& all, const std::string& extension) {
  return UnpackedShardIndex(
      archive, kTextMagic, stamp, extension,
      [&](std::span<const uint8_t> file) { return UnpackTarTexts(file, stamp, all, extension); });
}

Status WriteTarTexts(const std::string& archive, const TarMembers::Texts& texts,
                     const FileStamp& stamp, const std::string& extension) {
  return WriteShardIndex(archive, PackTarTexts(texts, stamp), extension);
}

}  // namespace stoker
