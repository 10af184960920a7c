#include "io/packed/packed_index.h"

#include <algorithm>
#include <new>
#include <string_view>
#include <utility>

#include "core/result/try.h"
#include "io/index/image_list_sections.h"
#include "io/packed/packed_shard.h"
#include "io/packed/piece_fields.h"

namespace stoker {

using packed_set::Sample;
using packed_set::Shard;

namespace packed_set {

std::string ShardName(uint32_t shard) {
  constexpr size_t kDigits = 5;
  const std::string number = std::to_string(shard);
  return std::string(kDigits - std::min(number.size(), kDigits), '0') + number + ".stoker";
}

}  // namespace packed_set

namespace {

bool IsShard(const Shard& shard) {
  return shard.bytes < packed_set::kMaxShardBytes && (shard.bytes != 0 || shard.fingerprint == 0);
}

// Whether the record lies in its shard, and its parts in the record.
bool IsInside(const Sample& sample, const std::vector<Shard>& shards) {
  if (sample.shard() >= shards.size() || !sample.IsSound()) return false;
  const uint64_t length = sample.record_bytes();
  const uint64_t whole = shards[sample.shard()].bytes;
  return length <= whole && sample.offset() <= whole - length;
}

template <typename Column, typename Check>
auto All(const Column& column, const Check& check) {
  return [&column, check](size_t begin) {
    for (size_t i = begin; i < column.size(); ++i) {
      if (!check(column[i])) return false;
    }
    return true;
  };
}

}  // namespace

Result<PackedIndex> PackedIndex::Open(const std::string& path) {
  try {
    ASSIGN_OR_RETURN(const SectionFile file, SectionFile::Open(path, packed_set::kIndexFile));
    PackedIndex index;
    TRY(file.Require({sections::kShards, sections::kSamples}));
    TRY(ReadPieceFields(file, index.pieces_.fields));
    const bool has_paths = index.pieces() > 1;
    TRY(ReadImageList(file, index.list_, has_paths ? ListedNames::kPaths : ListedNames::kNames));
    TRY(file.ReadColumn(
        sections::kShards, index.shards_, [](uint64_t n) { return n <= packed_set::kMaxShards; },
        All(index.shards_, IsShard)));
    TRY(file.ReadColumn(
        sections::kSamples, index.samples_,
        [&](uint64_t n) { return n == index.list_.files.size(); },
        All(index.samples_, [&](const Sample& s) { return IsInside(s, index.shards_); })));
    if (index.pieces() > 1) TRY(index.ReadPieces(file));
    index.fingerprint_ = file.fingerprint();
    if (file.file().version() != nullptr) index.version_ = *file.file().version();
    return index;
  } catch (const std::bad_alloc&) {
    return Error{Code::kResourceExhausted, "out of memory for the packed set's index", path};
  }
}

Status PackedIndex::ReadPieces(const SectionFile& file) {
  TRY(file.Require({sections::kFurtherSamples, sections::kFurtherPaths}));
  const uint64_t further = (pieces() - 1) * samples_.size();
  TRY(file.ReadColumn(
      sections::kFurtherSamples, pieces_.samples, [&](uint64_t n) { return n == further; },
      All(pieces_.samples, [&](const Sample& s) { return IsInside(s, shards_); })));
  std::string paths;
  const auto any = [](auto) { return true; };
  TRY(file.ReadColumn(sections::kFurtherPaths, paths, any, any));
  bool are_sound = list_.classes.empty();
  for (uint64_t id = 0; id < list_.files.size() && are_sound; ++id) {
    are_sound = IsPackedPath(list_.NameOf(id));
  }
  std::string_view rest = paths;
  for (uint64_t i = 0; i < further && are_sound; ++i) {
    const std::string_view path = rest.substr(0, rest.find('\0'));
    are_sound = IsPackedPath(path) && path.size() < rest.size();
    pieces_.paths.Add(path);
    rest.remove_prefix(std::min(path.size() + 1, rest.size()));
  }
  return are_sound && rest.empty() ? Status() : file.Damaged("a path");
}

void PackedIndex::AppendPath(uint64_t id, size_t piece, std::string& to) const {
  if (piece == 0) return list_.AppendPath(id, to);
  to += pieces_.paths[(piece - 1) * samples_.size() + id];
}

ImageFacts PackedIndex::FactsOf(uint64_t id) const {
  const Sample& sample = samples_[id];
  const bool in_exif = sample.orientation >= 1 && sample.orientation <= 8;
  return {.file_bytes = sample.file_bytes,
          .width = sample.width,
          .height = sample.height,
          .orientation = in_exif ? sample.orientation : uint8_t{1},
          .format = sample.format};
}

uint64_t PackedIndex::memory_bytes() const {
  return list_.memory_bytes() + shards_.capacity() * sizeof(Shard) +
         (samples_.capacity() + pieces_.samples.capacity()) * sizeof(Sample) +
         pieces_.paths.memory_bytes();
}

Result<uint64_t> WritePackedIndex(const std::string& path, const ImageList& list,
                                  const std::vector<Shard>& shards,
                                  const std::vector<Sample>& samples, const PackedPieces& further) {
  const bool has_pieces = !further.fields.empty();
  ASSIGN_OR_RETURN(SectionFileWriter writer,
                   SectionFileWriter::Create(path, kImageListSections + 2 + (has_pieces ? 3 : 0)));
  TRY(AddImageList(list, writer));
  TRY(writer.Add(sections::kShards, sections::ColumnBytes(shards)));
  TRY(writer.Add(sections::kSamples, sections::ColumnBytes(samples)));
  const bool has_pngs = std::ranges::any_of(samples, &Sample::is_packed_png) ||
                        std::ranges::any_of(further.samples, &Sample::is_packed_png);
  const SectionFileKind kind = packed_set::OfVersion(packed_set::kIndexFile, has_pieces, has_pngs);
  if (!has_pieces) return writer.Commit(kind, list.Fingerprint());
  TRY(writer.Add(sections::kPieceFields, sections::ColumnBytes(further.fields)));
  TRY(writer.Add(sections::kFurtherSamples, sections::ColumnBytes(further.samples)));
  std::string paths;
  for (size_t i = 0; i < further.paths.size(); ++i) {
    paths.append(further.paths[i]).push_back('\0');
  }
  TRY(writer.Add(sections::kFurtherPaths, sections::ColumnBytes(paths)));
  return writer.Commit(kind, further.fingerprint);
}

}  // namespace stoker
