#include "tests/fuzz/open/open_packed_set.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "io/packed/packed_index.h"
#include "io/packed/packed_merge.h"
#include "io/packed/packed_shard.h"
#include "tests/fuzz/fuzzed_file.h"
#include "tests/fuzz/open/sign_sections.h"
#include "tests/fuzz/promise.h"

namespace stoker::testing {
namespace {

using packed_set::Entry;
using packed_set::Sample;

constexpr uint32_t kNumber = 3;

void CheckRecord(const Sample& sample, uint64_t bytes) {
  Promise(sample.offset() <= bytes && sample.record_bytes() <= bytes &&
              sample.offset() + sample.record_bytes() <= bytes,
          "records lie in their shard");
}

void VisitIndex(const PackedIndex& index, size_t input) {
  const ImageList& list = index.list();
  Promise(!list.files.empty() && index.samples().size() == list.files.size(), "each is stored");
  Promise(index.memory_bytes() <= 4 * input + 8192, "memory is bounded");
  std::string path;
  for (uint64_t id = 0; id < list.files.size(); ++id) {
    for (size_t piece = 0; piece < index.pieces(); ++piece) {
      const Sample& sample = index.SampleOf(id, piece);
      Promise(sample.shard() < index.shards().size(), "shards are those of the set");
      CheckRecord(sample, index.shards()[sample.shard()].bytes);
      path.clear();
      index.AppendPath(id, piece, path);
      Promise(IsPackedPath(path), "paths are below the folder");
    }
    const ImageFacts facts = index.FactsOf(id);
    Promise(facts.orientation >= 1 && facts.orientation <= 8, "orientations are EXIF's");
    (void)list.LabelOf(id);
  }
}

void VisitShard(const PackedShard& shard, size_t input) {
  Promise(shard.paths.size() == shard.entries.size(), "each record has a path");
  Promise(shard.paths.memory_bytes() + shard.entries.size() * sizeof(Entry) <= 4 * input + 8192,
          "memory is bounded");
  std::vector<MergedSample> samples;
  for (size_t i = 0; i < shard.entries.size(); ++i) {
    CheckRecord(shard.entries[i].sample, input);
    Promise(shard.entries[i].sample.shard() == kNumber, "records are the shard's own");
    Promise(IsPackedPath(shard.paths[i]), "paths are below the folder");
    samples.push_back({shard.paths[i], shard.entries[i].sample});
  }
  if (samples.empty()) return;
  const Result<MergedSet> set =
      shard.fields.empty() ? MergeShards(std::move(samples)) : MergePieces(shard.fields, samples);
  Promise(!set.ok() || set->list.files.size() * shard.pieces() == shard.entries.size(),
          "each is a piece of a sample");
}

}  // namespace

void OpenFuzzedPackedSet(std::span<const uint8_t> bytes) {
  static FuzzedFile fuzzed("packed");
  std::vector<uint8_t> file(bytes.begin(), bytes.end());
  const auto& magic = packed_set::kShardFile.magic;
  const bool is_shard =
      file.size() >= magic.size() && std::equal(magic.begin(), magic.end(), file.begin());
  SignSections(file, is_shard ? packed_set::kShardFile.version : packed_set::kIndexFile.version);
  const std::string& path = fuzzed.Write(file);
  if (is_shard) {
    const Result<PackedShard> shard = ReadPackedShard(path, kNumber);
    if (shard.ok()) VisitShard(*shard, file.size());
    Promise(shard.ok() || shard.error().file == path, "errors name the file");
  } else {
    const Result<PackedIndex> index = PackedIndex::Open(path);
    if (index.ok()) VisitIndex(*index, file.size());
    Promise(index.ok() || index.error().file == path, "errors name the file");
  }
}

}  // namespace stoker::testing
