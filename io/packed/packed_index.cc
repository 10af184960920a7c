#include "io/packed/packed_index.h"

#include <algorithm>
#include <new>
#include <utility>

#include "core/result/try.h"
#include "io/index/image_list_sections.h"

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
  const uint64_t length = sample.bytes + packed_set::kCrcBytes;
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
    TRY(ReadImageList(file, index.list_));
    TRY(file.ReadColumn(
        sections::kShards, index.shards_, [](uint64_t n) { return n <= packed_set::kMaxShards; },
        All(index.shards_, IsShard)));
    TRY(file.ReadColumn(
        sections::kSamples, index.samples_,
        [&](uint64_t n) { return n == index.list_.files.size(); },
        All(index.samples_, [&](const Sample& s) { return IsInside(s, index.shards_); })));
    index.fingerprint_ = file.fingerprint();
    if (file.file().version() != nullptr) index.version_ = *file.file().version();
    return index;
  } catch (const std::bad_alloc&) {
    return Error{Code::kResourceExhausted, "out of memory for the packed set's index", path};
  }
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
         samples_.capacity() * sizeof(Sample);
}

Result<uint64_t> WritePackedIndex(const std::string& path, const ImageList& list,
                                  const std::vector<Shard>& shards,
                                  const std::vector<Sample>& samples) {
  ASSIGN_OR_RETURN(SectionFileWriter writer,
                   SectionFileWriter::Create(path, kImageListSections + 2));
  TRY(AddImageList(list, writer));
  TRY(writer.Add(sections::kShards, sections::ColumnBytes(shards)));
  TRY(writer.Add(sections::kSamples, sections::ColumnBytes(samples)));
  return writer.Commit(packed_set::kIndexFile, list.Fingerprint());
}

}  // namespace stoker
