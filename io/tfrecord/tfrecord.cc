#include "io/tfrecord/tfrecord.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>

#include "core/hash/hash.h"
#include "core/result/plural.h"
#include "core/result/try.h"
#include "core/system/machine.h"
#include "io/annotations/object_columns.h"
#include "io/files/input_file.h"
#include "io/remote/object_version.h"
#include "io/shards/for_each_shard.h"
#include "io/shards/shard_pattern.h"
#include "io/source/path_table.h"
#include "io/tfrecord/tfrecord_features.h"
#include "io/tfrecord/tfrecord_index_file.h"
#include "io/tfrecord/tfrecord_objects.h"
#include "io/tfrecord/tfrecord_records.h"

namespace stoker {

namespace {

// The records of several files, in their order.
struct RecordList {
  PathTable paths;
  std::vector<uint64_t> firsts;             // by file: the number of its first record
  std::vector<uint64_t> ends;               // of each record, in its file
  uint64_t content = 0;                     // of all records (tfrecord_records.h)
  std::optional<ObjectVersions> objects{};  // empty if the files are local

  ByteRange RangeOf(uint64_t id) const {
    const auto next = std::ranges::upper_bound(firsts, id);
    const auto file = static_cast<size_t>(next - firsts.begin()) - 1;
    const uint64_t begin = id == firsts[file] ? 0 : ends[id - 1];
    return {.file = static_cast<uint32_t>(file), .offset = begin, .length = ends[id] - begin};
  }

  // Returns an error in a record, with the file and the record's offset.
  Error InRecord(uint64_t id, Error error) const {
    const ByteRange range = RangeOf(id);
    error.file = paths[range.file];
    error.offset = range.offset;
    return error;
  }

  uint64_t memory_bytes() const {
    return paths.memory_bytes() + (firsts.capacity() + ends.capacity()) * sizeof(uint64_t) +
           (objects ? objects->memory_bytes() : 0);
  }
};

// Adds the objects of a file's records.
Status AddObjects(const std::string& path, const IndexedTfRecords& shard,
                  TfRecordObjects& objects) {
  for (size_t record = 0; record < shard.records.ends.size(); ++record) {
    Status added = objects.Add(shard.lists, record);
    if (added.ok()) continue;
    Error error = std::move(added).error();
    error.file = path;
    error.offset = record == 0 ? 0 : shard.records.ends[record - 1];
    return error;
  }
  return {};
}

Result<RecordList> ListRecords(const std::vector<std::string>& paths,
                               const TfRecordOptions& options, TfRecordObjects& objects) {
  ASSIGN_OR_RETURN(const std::shared_ptr<DiskCache> cache, OpenObjectCache(options.cache));
  std::vector<IndexedTfRecords> shards(paths.size());
  std::vector<ObjectVersion> versions(paths.size());
  TRY(ForEachShard(paths, options.threads, [&](size_t shard) -> Status {
    ASSIGN_OR_RETURN(shards[shard],
                     IndexTfRecords(paths[shard], objects.features(), versions[shard]));
    return {};
  }));
  RecordList all{.paths = PathTable(paths),
                 .firsts = {},
                 .ends = {},
                 .objects = ObjectVersions::Of(paths, versions, cache)};
  size_t records = 0;
  for (const IndexedTfRecords& shard : shards) records += shard.records.ends.size();
  all.ends.reserve(records);
  for (size_t i = 0; i < shards.size(); ++i) {
    const IndexedTfRecords shard = std::exchange(shards[i], {});
    TRY(AddObjects(paths[i], shard, objects));
    const TfRecords& of = shard.records;
    all.firsts.push_back(all.ends.size());
    all.content = JoinContent(all.content, of.content, of.ends.size());
    all.ends.insert(all.ends.end(), of.ends.begin(), of.ends.end());
  }
  if (records != 0) return all;
  return Error{.code = Code::kInvalidArgument,
               .cause = "there is no record in " + std::to_string(paths.size()) +
                        Plural(paths.size(), " file", " files"),
               .file = paths[0]};
}

// Sets the types of the features from the first record. Errors have no offset.
Status SetTypesByFirst(const RecordList& records, TfRecordFeatures& features) {
  constexpr uint64_t kMostBytes = 256 << 20;
  const ByteRange range = records.RangeOf(0);
  if (range.length > kMostBytes) {
    return Error{Code::kResourceExhausted,
                 "the first record has " + std::to_string(range.length) + " bytes"};
  }
  ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(std::string(records.paths[range.file])));
  std::vector<uint8_t> bytes(range.length);
  ASSIGN_OR_RETURN(const size_t got, file.ReadAt(range.offset, bytes));
  ASSIGN_OR_RETURN(const auto data, DataOfTfRecord(std::span(bytes).first(got)));
  return SetTypes(data, features);
}

class TfRecordSource final : public SampleSource {
 public:
  // The last fields of `features` are those of `objects`.
  TfRecordSource(RecordList records, TfRecordFeatures features, ObjectColumns objects,
                 std::vector<std::string> classes, std::string described)
      : records_(std::move(records)),
        features_(std::move(features)),
        objects_(std::move(objects)),
        classes_(std::move(classes)),
        described_(std::move(described)),
        fingerprint_(objects_.Hash(HashOf(records_, features_))) {}

  uint64_t size() const override { return records_.ends.size(); }
  uint64_t files() const override { return records_.paths.size(); }
  std::span<const Field> fields() const override { return features_.fields; }
  ByteRange RangeOf(uint64_t id) const override { return records_.RangeOf(id); }
  const ObjectVersions* objects() const override {
    return records_.objects ? &*records_.objects : nullptr;
  }
  bool has_records() const override { return true; }

  Result<std::span<const uint8_t>> Unpack(uint64_t id, std::span<const uint8_t> record,
                                          std::span<uint8_t> rows) const override {
    Result<std::span<const uint8_t>> image = UnpackRecord(record, rows);
    if (!image.ok()) return records_.InRecord(id, std::move(image).error());
    return image;
  }

  void PathOf(uint32_t file, std::string& path) const override {
    path.assign(records_.paths[file]);
  }

  std::span<const uint8_t> View(size_t field, uint64_t id) const override {
    const size_t first = features_.names.size();
    return field < first ? std::span<const uint8_t>() : objects_.columns.View(field - first, id);
  }
  uint32_t max_objects() const override { return objects_.columns.max_objects(); }

  const std::vector<std::string>& classes() const override {
    return classes_.empty() ? objects_.classes : classes_;
  }
  uint64_t Fingerprint() const override { return fingerprint_; }
  std::string Describe() const override { return described_; }

  uint64_t memory_bytes() const override {
    uint64_t bytes =
        sizeof(*this) + records_.memory_bytes() + described_.capacity() + objects_.bytes;
    for (const auto* names : {&features_.names, &classes_}) {
      bytes += names->capacity() * sizeof(std::string);
      for (const std::string& name : *names) bytes += name.capacity();
    }
    return bytes + features_.fields.capacity() * sizeof(Field);
  }

 private:
  Result<std::span<const uint8_t>> UnpackRecord(std::span<const uint8_t> record,
                                                std::span<uint8_t> rows) const {
    ASSIGN_OR_RETURN(const auto data, DataOfTfRecord(record));
    ASSIGN_OR_RETURN(const auto image, UnpackExample(data, features_, rows));
    if (classes_.empty()) return image;
    const int64_t label = features_.fields[1].ClassNumberIn(rows.data());  // the label comes first
    if (label >= 0 && static_cast<uint64_t>(label) < classes_.size()) return image;
    return Error{.code = Code::kDataLoss,
                 .cause = "label " + std::to_string(label) + " has no class name: there are " +
                          std::to_string(classes_.size())};
  }

  // Hashes the records' lengths and checksums, and the features, but neither the names of files nor
  // how the records are divided among them, which may change.
  static uint64_t HashOf(const RecordList& records, const TfRecordFeatures& features) {
    uint64_t hash = Hash64(std::to_string(records.content), records.ends.size());
    for (const std::string& name : features.names) hash = Hash64(name, hash);
    for (const Field& field : std::span(features.fields).subspan(1)) {
      hash = Hash64(field.name + DescribeRow(field), hash);
    }
    return hash;
  }

  const RecordList records_;
  const TfRecordFeatures features_;
  const ObjectColumns objects_;
  const std::vector<std::string> classes_;  // of the label of images
  const std::string described_;
  const uint64_t fingerprint_;
};

}  // namespace

Result<std::shared_ptr<const SampleSource>> TfRecord(const std::string& pattern,
                                                     const TfRecordOptions& options) {
  TRY(CheckThreads(options.threads));
  ASSIGN_OR_RETURN(TfRecordFeatures features, FeaturesOf(options));
  if (options.label.empty() && !options.class_names.empty()) {
    return Error{Code::kInvalidArgument,
                 "tfrecord: class_names were given, and samples have no label"};
  }
  std::vector<KeyedColumn> keyed = options.keyed;
  std::erase_if(keyed,
                [](const KeyedColumn& column) { return column.field.kind == Field::Kind::kFixed; });
  ASSIGN_OR_RETURN(TfRecordObjects objects, TfRecordObjects::Make(keyed));
  ASSIGN_OR_RETURN(const std::vector<std::string> paths, ExpandShards(pattern, options.root));
  ASSIGN_OR_RETURN(RecordList records, ListRecords(paths, options, objects));
  if (Status types = SetTypesByFirst(records, features); !types.ok()) {
    return records.InRecord(0, std::move(types).error());
  }
  Result<std::vector<ObjectValues>> values = objects.Take();
  if (!values.ok()) return Error(values.error()).WithFile(paths[0]);
  ASSIGN_OR_RETURN(ObjectColumns columns,
                   ObjectColumns::Take(*std::move(values), !options.label.empty(), paths[0]));
  for (const ArrayColumn& column : columns.columns.columns()) {
    features.fields.push_back(FieldOf(column));
  }
  return std::shared_ptr<const SampleSource>(
      std::make_shared<TfRecordSource>(std::move(records), std::move(features), std::move(columns),
                                       options.class_names, "tfrecord(" + pattern + ")"));
}

}  // namespace stoker
