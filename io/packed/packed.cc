#include "io/packed/packed.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "core/numbers/divide_up.h"
#include "core/result/try.h"
#include "core/result/utf8.h"
#include "core/system/machine.h"
#include "io/files/section_file.h"
#include "io/index/folder_listing.h"
#include "io/index/split_folders.h"
#include "io/packed/open_packed.h"
#include "io/packed/packed_shard.h"
#include "io/packed/piece_fields.h"
#include "io/remote/object_url.h"
#include "io/remote/object_version.h"
#include "io/shards/for_each_shard.h"

namespace stoker {

namespace {

using packed_set::kCrcBytes;
using packed_set::Sample;
using packed_set::Shard;

// Returns the paths of the shards that there are.
std::vector<std::string> ShardPaths(const std::string& prefix, const PackedIndex& index) {
  std::vector<std::string> paths;
  for (uint32_t shard = 0; shard < index.shards().size(); ++shard) {
    if (index.shards()[shard].bytes != 0) paths.push_back(prefix + packed_set::ShardName(shard));
  }
  return paths;
}

// Checks that a shard is the one that the index describes.
Status CheckShard(const std::string& path, const Shard& known, ObjectVersion& version) {
  Result<SectionFile> file = SectionFile::Open(path, packed_set::kShardFile);
  if (!file.ok()) {
    Error error = std::move(file).error();
    if (error.code == Code::kNotFound) {
      error.cause = "this shard of the packed set is missing";
      error.advice = packed_set::kShardFile.remake;
    }
    return error;
  }
  if (file->file_bytes() != known.bytes || file->fingerprint() != known.fingerprint) {
    return file->Damaged("it is another one than the index knows");
  }
  if (file->file().version() != nullptr) {
    version = *file->file().version();
    version.content = file->fingerprint();
  }
  return {};
}

Result<std::optional<ObjectVersions>> CheckShards(const std::string& prefix,
                                                  const PackedIndex& index,
                                                  const PackedOptions& options) {
  ASSIGN_OR_RETURN(const std::shared_ptr<DiskCache> cache, OpenObjectCache(options.cache));
  const std::vector<std::string> paths = ShardPaths(prefix, index);
  std::vector<Shard> known;
  for (const Shard& shard : index.shards()) {
    if (shard.bytes != 0) known.push_back(shard);
  }
  std::vector<ObjectVersion> versions(paths.size());
  TRY(ForEachShard(paths, options.threads,
                   [&](size_t i) { return CheckShard(paths[i], known[i], versions[i]); }));
  return ObjectVersions::Of(paths, versions, cache);
}

class PackedSource final : public SampleSource {
 public:
  PackedSource(std::string folder, std::shared_ptr<const PackedIndex> index,
               std::optional<ObjectVersions> objects, bool has_cache)
      : folder_(std::move(folder)),
        prefix_(WithSlash(folder_)),
        index_(std::move(index)),
        objects_(std::move(objects)),
        has_cache_(has_cache),
        fields_(index_->pieces() > 1 ? FieldsOf(index_->further().fields) : std::vector<Field>()) {}

  uint64_t size() const override { return index_->samples().size(); }
  uint64_t files() const override { return index_->shards().size(); }

  std::span<const Field> fields() const override {
    if (!fields_.empty()) return fields_;
    return ImageFields(/*labels=*/!index_->list().classes.empty());
  }

  ByteRange RangeOf(uint64_t id) const override { return RangeOfPiece(id, 0); }

  ByteRange RangeOfPiece(uint64_t id, size_t piece) const override {
    const Sample& sample = index_->SampleOf(id, piece);
    return {.file = sample.shard(), .offset = sample.offset(), .length = sample.bytes + kCrcBytes};
  }

  bool has_row_ranges(uint64_t id) const override {
    return !has_cache_ && index_->samples()[id].mcu_height != 0;
  }

  ByteRange RangeOfRows(uint64_t id, int top, int bottom) const override {
    if (!has_row_ranges(id)) return RangeOf(id);
    const Sample& sample = index_->samples()[id];
    const int height = sample.mcu_height;
    const int rows = DivideUp(static_cast<int>(sample.height), height);
    const RowParts::Bytes part =
        sample.parts.Find(top / height, DivideUp(bottom, height), rows, sample.bytes);
    return {.file = sample.shard(),
            .offset = sample.offset() + part.begin,
            .length = part.end - part.begin};
  }

  void PathOf(uint32_t file, std::string& path) const override {
    path.assign(prefix_).append(packed_set::ShardName(file));
  }

  void NameOf(uint64_t id, std::string& name) const override { NameOfPiece(id, 0, name); }
  void NameOfPiece(uint64_t id, size_t piece, std::string& name) const override {
    name.clear();
    index_->AppendPath(id, piece, name);
  }

  const ObjectVersions* objects() const override { return objects_ ? &*objects_ : nullptr; }

  bool has_records() const override { return true; }

  Result<std::span<const uint8_t>> Unpack(uint64_t id, std::span<const uint8_t> record,
                                          std::span<uint8_t> /*rows*/) const override {
    return UnpackPiece(id, 0, record);
  }

  Result<std::span<const uint8_t>> UnpackPiece(uint64_t id, size_t piece,
                                               std::span<const uint8_t> record) const override {
    const Sample& sample = index_->SampleOf(id, piece);
    const bool is_whole = record.size() == sample.bytes + kCrcBytes;
    // A part of a packed JPEG, or all of it, or a packed PNG. Their rows have checksums, which are
    // verified where a crop needs them.
    if (sample.form == packed_set::Form::kPackedJpeg || (sample.is_packed_png() && is_whole)) {
      return is_whole ? record.first(sample.bytes) : record;
    }
    if (!is_whole || !IsSoundRecord(record)) return Damaged(id, piece);
    return record.first(sample.bytes);
  }

  void FixedRows(size_t field, std::span<const uint64_t> ids, void* rows) const override {
    if (fields()[field].kind != Field::Kind::kFixed) return;  // not the label: a mask has no rows
    auto* label = static_cast<int64_t*>(rows);
    for (const uint64_t id : ids) *label++ = index_->list().LabelOf(id);
  }

  ImageFacts FactsOf(uint64_t id) const override { return index_->FactsOf(id); }

  const std::vector<std::string>& classes() const override { return index_->list().classes; }

  uint64_t memory_bytes() const override {
    return sizeof(*this) + folder_.capacity() + prefix_.capacity() + index_->memory_bytes() +
           (objects_ ? objects_->memory_bytes() : 0);
  }

  uint64_t Fingerprint() const override { return index_->fingerprint(); }
  std::string Describe() const override { return "packed(" + folder_ + ")"; }

 private:
  Error Damaged(uint64_t id, size_t piece) const {
    Error error{.code = Code::kDataLoss,
                .cause = "the record is damaged: its checksum is wrong",
                .advice = packed_set::kShardFile.remake};
    const ByteRange range = RangeOfPiece(id, piece);
    PathOf(range.file, error.file);
    error.offset = range.offset;
    return error;
  }

  const std::string folder_;  // as given
  const std::string prefix_;
  const std::shared_ptr<const PackedIndex> index_;
  const std::optional<ObjectVersions> objects_;
  const bool has_cache_;  // of objects: it keeps ranges, and finds those that it has kept
  const std::vector<Field> fields_;  // if there are several; otherwise they are ImageFields
};

// The names of the packed sets in a folder.
std::vector<std::string> PackedSetsIn(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code failed;
  for (std::filesystem::directory_iterator entry(folder, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    if (IsPackedSet(entry->path().string())) names.push_back(entry->path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

Error NoPackedSet(const std::string& folder) {
  Error error{.code = Code::kInvalidArgument,
              .cause = "this folder is not a packed set",
              .file = folder,
              .advice = packed_set::kIndexFile.give};
  const std::vector<std::string> inside = PackedSetsIn(folder);
  if (!inside.empty()) {
    PackedSetsInside text = DescribePackedSets(folder, inside);
    error.cause = std::move(text.cause);
    error.advice = std::move(text.advice);
  }
  return error;
}

}  // namespace

bool IsPackedSet(const std::string& folder) {
  std::error_code failed;
  const std::string prefix = WithSlash(folder);
  return std::filesystem::exists(prefix + packed_set::kIndexName, failed) ||
         std::filesystem::exists(prefix + packed_set::ShardName(0), failed);
}

Result<std::shared_ptr<const PackedIndex>> OpenPackedIndex(const std::string& folder) {
  TRY(CheckFolderUrl(folder));
  Result<PackedIndex> index = PackedIndex::Open(WithSlash(folder) + packed_set::kIndexName);
  if (index.ok()) return std::make_shared<const PackedIndex>(*std::move(index));
  Error error = std::move(index).error();
  std::error_code failed;
  if (error.code == Code::kNotFound && IsPackedSet(folder)) {
    error.cause = "this packed set has no index: packing has not finished";
    error.file = folder;
    error.advice = "Run `stoker pack` again: it continues, and writes the index";
  } else if (error.code == Code::kNotFound && std::filesystem::is_directory(folder, failed)) {
    return NoPackedSet(folder);
  }
  return error;
}

Result<std::shared_ptr<const SampleSource>> Packed(const std::string& folder,
                                                   std::shared_ptr<const PackedIndex> index,
                                                   const PackedOptions& options) {
  TRY(CheckThreads(options.threads));
  ASSIGN_OR_RETURN(std::optional<ObjectVersions> objects,
                   CheckShards(WithSlash(folder), *index, options));
  const bool has_cache = objects && !options.cache.folder.empty();
  return std::shared_ptr<const SampleSource>(
      std::make_shared<PackedSource>(folder, std::move(index), std::move(objects), has_cache));
}

Result<std::shared_ptr<const SampleSource>> Packed(const std::string& folder,
                                                   const PackedOptions& options) {
  ASSIGN_OR_RETURN(std::shared_ptr<const PackedIndex> index, OpenPackedIndex(folder));
  return Packed(folder, std::move(index), options);
}

}  // namespace stoker
