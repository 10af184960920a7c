#include "tests/testing/samples/make_packed.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <span>

#include "core/hash/crc32c.h"
#include "io/packed/packed_index.h"
#include "io/packed/packed_merge.h"
#include "io/packed/packed_shard.h"
#include "io/packed/piece_fields.h"

namespace stoker::testing {

void MakePackedSet(const std::string& folder, const NamedFiles& files, size_t files_a_shard,
                   const std::vector<packed_set::PieceField>& fields) {
  std::deque<PackedShard> shards;
  for (size_t first = 0; first < files.size(); first += files_a_shard) {
    const auto number = static_cast<uint32_t>(shards.size());
    const std::string path = folder + "/" + packed_set::ShardName(number);
    PackedShardWriter writer = PackedShardWriter::Create(path, number, fields).value();
    for (size_t i = first; i < std::min(first + files_a_shard, files.size()); ++i) {
      const std::string& bytes = files[i].second;
      const std::span image(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
      packed_set::Entry entry;
      entry.sample.file_bytes = static_cast<uint32_t>(bytes.size());
      entry.sample.file_crc = Crc32c(image);
      if (!writer.Add(entry, files[i].first, image).ok()) std::abort();
    }
    if (!writer.Commit().ok()) std::abort();
    shards.push_back(ReadPackedShard(path, number).value());
  }
  std::vector<MergedSample> samples;
  std::vector<packed_set::Shard> known;
  for (const PackedShard& shard : shards) {
    known.push_back(shard.shard);
    for (size_t i = 0; i < shard.entries.size(); ++i) {
      samples.push_back({shard.paths[i], shard.entries[i].sample});
    }
  }
  const MergedSet set = fields.empty() ? MergeShards(std::move(samples)).value()
                                       : MergePieces(fields, samples).value();
  const std::string index = folder + "/" + packed_set::kIndexName;
  if (!WritePackedIndex(index, set.list, known, set.samples, set.further).ok()) std::abort();
}

std::vector<packed_set::PieceField> ImageAndMask() {
  const std::vector<Field> fields = {
      {.name = "image", .kind = Field::Kind::kImage},
      {.name = "mask", .kind = Field::Kind::kMask, .dtype = DType::kU8, .fill = 255}};
  return PieceFieldsOf(fields).value();
}

}  // namespace stoker::testing
