#include "io/tar/tar.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "core/hash/hash.h"
#include "core/result/plural.h"
#include "core/result/try.h"
#include "core/result/utf8.h"
#include "core/system/machine.h"
#include "io/annotations/object_columns.h"
#include "io/annotations/object_json.h"
#include "io/files/input_file.h"
#include "io/files/text_file.h"
#include "io/memory/npy.h"
#include "io/remote/object_version.h"
#include "io/shards/for_each_shard.h"
#include "io/shards/shard_index_file.h"
#include "io/shards/shard_pattern.h"
#include "io/source/image_numbers.h"
#include "io/tar/tar_index_file.h"
#include "io/tar/tar_members.h"
#include "io/tar/tar_samples.h"
#include "io/tar/tar_text_file.h"

namespace stoker {

namespace {

// Returns an archive's members by its index files.
std::optional<TarMembers> IndexedMembers(const InputFile& archive, const FileStamp& stamp,
                                         const std::vector<std::string>& texts) {
  std::optional<TarMembers> members = ReadTarIndex(archive, stamp);
  for (const std::string& extension : texts) {
    if (!members) break;
    std::optional<TarMembers::Texts> known = ReadTarTexts(archive, stamp, *members, extension);
    if (!known) return std::nullopt;
    members->texts.push_back(*std::move(known));
  }
  return members;
}

// Returns an archive's members, with the texts of these extensions: from its index files or, if
// these are not valid, from its headers. For an object, `version` is set.
Result<TarMembers> MembersOf(const std::string& path, const std::vector<std::string>& texts,
                             ObjectVersion& version) {
  return ContentOfShard(
      path, version,
      [&](const InputFile& archive, const FileStamp& stamp) {
        return IndexedMembers(archive, stamp, texts);
      },
      [&](InputFile archive, FileStamp& stamp) {
        return ReadTarMembers(std::move(archive), stamp, texts);
      },
      [&](const TarMembers& members, const FileStamp& stamp) {
        (void)WriteTarIndex(path, members, stamp);
        for (size_t i = 0; i < texts.size(); ++i) {
          (void)WriteTarTexts(path, members.texts[i], stamp, texts[i]);
        }
      });
}

// The memory of columns, which several threads add up.
class ColumnMemory {
 public:
  explicit ColumnMemory(uint64_t most) : most_(most == 0 ? AvailableMemory() / 2 : most) {}

  // Adds the columns of an archive.
  Status Add(const TarMembers& members, const std::string& path) {
    uint64_t bytes = 0;
    for (const TarMembers::Texts& texts : members.texts) {
      bytes += texts.bytes.size() + texts.ends.size() * sizeof(std::string_view);
    }
    if (used_.fetch_add(bytes) + bytes <= most_) return {};
    return Error{.code = Code::kResourceExhausted,
                 .cause = "tar: the columns take more than " + std::to_string(most_) +
                          " bytes of memory, with those of this archive",
                 .file = path,
                 .advice = "Take fewer columns, or fewer archives; their texts are kept in memory"};
  }

 private:
  const uint64_t most_;
  std::atomic<uint64_t> used_{0};
};

struct IndexedArchives {
  TarSamples samples;
  std::optional<ObjectVersions> objects;
};

// The samples of all archives.
Result<IndexedArchives> IndexArchives(const std::vector<std::string>& paths,
                                      const TarGrouping& grouping, const TarOptions& options) {
  std::vector<TarSamples> shards(paths.size());
  std::vector<ObjectVersion> versions(paths.size());
  ASSIGN_OR_RETURN(const std::shared_ptr<DiskCache> cache, OpenObjectCache(options.cache));
  ColumnMemory memory(options.column_bytes);
  TRY(ForEachShard(paths, options.threads, [&](size_t shard) -> Status {
    const std::string& path = paths[shard];
    ASSIGN_OR_RETURN(TarMembers members, MembersOf(path, grouping.texts, versions[shard]));
    TRY(memory.Add(members, path));
    ASSIGN_OR_RETURN(shards[shard], GroupMembers(std::move(members), grouping, path,
                                                 static_cast<uint32_t>(shard)));
    return {};
  }));
  TarSamples all;
  for (TarSamples& shard : shards) TRY(AppendSamples(all, std::exchange(shard, {}), paths));
  all.images.shrink_to_fit();
  all.ends.shrink_to_fit();
  all.shards.shrink_to_fit();
  all.keys.ShrinkToFit();
  all.labels.shrink_to_fit();
  for (auto& rows : all.columns) rows.shrink_to_fit();
  for (auto& rows : all.arrays) rows.shrink_to_fit();
  for (auto& rows : all.masks) rows.shrink_to_fit();
  return IndexedArchives{std::move(all), ObjectVersions::Of(paths, versions, cache)};
}

// Returns the offset of the text of a sample, the member with its key and this extension that is
// nearest to its image; nullopt if the archive cannot be read again.
std::optional<uint64_t> OffsetOfText(const std::string& path, std::string_view key,
                                     const std::string& extension, uint64_t image) {
  ObjectVersion version;
  const Result<TarMembers> members = MembersOf(path, {}, version);
  if (!members.ok()) return std::nullopt;
  std::optional<uint64_t> nearest;
  const auto distance = [image](uint64_t at) { return at < image ? image - at : at - image; };
  for (size_t i = 0; i < members->members.size(); ++i) {
    const std::optional<MemberName> name = SplitMemberName(members->NameOf(i));
    if (!name || name->key != key || LowerCase(name->extension) != extension) continue;
    const uint64_t at = members->members[i].offset;
    if (!nearest || distance(at) < distance(*nearest)) nearest = at;
  }
  return nearest;
}

// Reads the objects in one text of each sample.
Result<ObjectJson> ReadObjectsIn(const TarSamples& samples, const TarGrouping::Objects& objects,
                                 const std::string& extension,
                                 const std::vector<std::string>& paths) {
  Result<ObjectJson> made = ObjectJson::Make(objects.columns);
  if (!made.ok()) return Error(made.error()).WithFile(paths[0]);
  for (size_t id = 0; id < samples.images.size(); ++id) {
    const std::string_view text = samples.columns[objects.text][id];
    Status read = made->Read(TextFile("", std::string(text)));
    if (read.ok()) continue;
    Error error = std::move(read).error();
    const uint64_t in_text = error.offset.value_or(0);
    error.cause = "the " + Printable(extension) + " of the sample '" + Printable(samples.keys[id]) +
                  "', at its byte " + std::to_string(in_text) + ": " + error.cause;
    error.file = paths[samples.images[id].shard];
    error.offset = OffsetOfText(error.file, samples.keys[id], extension, samples.images[id].offset);
    if (error.offset) *error.offset += in_text;
    return error;
  }
  return made;
}

// Frees the texts that are not columns.
void FreeTexts(TarSamples& samples, const TarGrouping& grouping) {
  for (size_t i = 0; i < samples.texts.size(); ++i) {
    if (i % grouping.texts.size() >= grouping.text_columns) {
      std::vector<char>().swap(samples.texts[i]);
    }
  }
  samples.columns.resize(grouping.text_columns);
}

// Takes the objects out of the samples' texts, in the order of `keyed`.
Result<ObjectColumns> TakeObjects(TarSamples& samples, const TarGrouping& grouping,
                                  const std::vector<KeyedColumn>& keyed,
                                  const std::vector<std::string>& paths) {
  if (grouping.objects.empty()) return ObjectColumns();
  std::vector<ObjectValues> all;
  for (const TarGrouping::Objects& objects : grouping.objects) {
    ASSIGN_OR_RETURN(ObjectJson json,
                     ReadObjectsIn(samples, objects, grouping.texts[objects.text], paths));
    std::ranges::move(json.columns(), std::back_inserter(all));
  }
  FreeTexts(samples, grouping);
  const auto place = [&keyed](const ObjectValues& values) {
    return std::ranges::find(keyed, values.column().field.name,
                             [](const KeyedColumn& column) { return column.field.name; });
  };
  std::ranges::sort(all, {}, place);
  return ObjectColumns::Take(std::move(all), !samples.labels.empty(), paths[0]);
}

// Adds the offset of a member to that of an error in it, and names the archive and the member's
// column.
Error InMember(Error error, const TarSamples::Member& member, const std::string& path,
               const std::string& column) {
  error.cause = "column '" + column + "': " + error.cause;
  error.offset = member.offset + error.offset.value_or(0);
  return std::move(error).WithFile(path);
}

// Returns the field that arrays like this one, the first sample's, make.
Result<Field> FieldOfArray(const TarSamples::Member& array, const std::string& path,
                           const std::string& name) {
  ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(path));
  std::vector<uint8_t> begin(std::min<size_t>(array.length, kMostNpyHeaderBytes));
  ASSIGN_OR_RETURN(const size_t got, file.ReadAt(array.offset, begin));
  const Result<NpyHeader> header = ParseNpyHeader(std::span(begin).first(got));
  if (!header.ok()) return InMember(header.error(), array, path, name);
  const std::span<const int64_t> shape = header->shape();
  Field field{.name = name,
              .kind = Field::Kind::kLoaded,
              .dtype = header->dtype,
              .row_shape = {shape.begin(), shape.end()}};
  if (header->data_begin + field.row_bytes() == array.length) return field;
  const bool is_cut = header->data_begin + field.row_bytes() > array.length;
  Error error{.code = Code::kDataLoss,
              .cause = "the array is " + DescribeRow(field) + ", and its member of " +
                       std::to_string(array.length) + " bytes has " + (is_cut ? "fewer" : "more"),
              .advice = "Write the array again, by numpy.save"};
  return InMember(std::move(error), array, path, name);
}

// Names the sample of an error that leaves a column without a type and shape.
Error OfFirstSample(Error error, const TarSamples& samples) {
  error.cause += "; the first sample, '" + Printable(samples.keys[0]) +
                 "', determines the column's type and shape";
  return error;
}

// Precondition: there is a sample.
Result<std::vector<Field>> FieldsOf(const TarSamples& samples, const ImageNumbers& images,
                                    const std::vector<std::string>& paths,
                                    const TarOptions& options, const MemoryColumns& objects) {
  const std::span<const Field> standard = ImageFields(/*labels=*/!samples.labels.empty());
  std::vector<Field> fields(standard.begin(), standard.begin() + 1);
  fields[0].varies = images.vary();
  fields[0].count = images.Most();
  for (const KeyedColumn& column : options.keyed) {
    if (column.is_mask()) fields.push_back(column.field);
  }
  fields.insert(fields.end(), standard.begin() + 1, standard.end());
  size_t next_array = 0;
  for (const auto& [name, extension] : options.columns) {
    if (!IsArrayExtension(extension)) {
      const bool is_text = IsTextExtension(LowerCase(extension));
      fields.push_back({.name = name, .dtype = is_text ? DType::kString : DType::kBytes});
      continue;
    }
    const TarSamples::Member& first = samples.arrays[next_array++][0];
    Result<Field> field = FieldOfArray(first, paths[first.shard], name);
    if (!field.ok()) return OfFirstSample(field.error(), samples);
    fields.push_back(*std::move(field));
  }
  for (const ArrayColumn& column : objects.columns()) fields.push_back(FieldOf(column));
  return fields;
}

class TarSource final : public SampleSource {
 public:
  // `indexed`: without ends, which are in `images`.
  TarSource(std::vector<std::string> paths, IndexedArchives indexed, ImageNumbers images,
            ObjectColumns of_images, std::vector<Field> fields, std::string described)
      : paths_(PathTable(paths)),
        images_(std::move(images)),
        samples_(std::move(indexed.samples)),
        objects_(std::move(indexed.objects)),
        fields_(std::move(fields)),
        columns_(ColumnsOf(fields_)),
        of_images_(std::move(of_images)),
        first_of_images_(fields_.size() - of_images_.columns.columns().size()),
        described_(std::move(described)),
        fingerprint_(Hash()) {}

  uint64_t size() const override { return samples_.keys.size(); }

  size_t PiecesOf(uint64_t id) const override {
    return images_.vary() ? images_.CountOf(id) : 1 + samples_.masks.size();
  }

  std::span<const Field> fields() const override { return fields_; }

  uint64_t files() const override { return paths_.size(); }

  bool has_records() const override { return !samples_.arrays.empty(); }

  ByteRange RangeOf(uint64_t id) const override {
    if (PiecesOf(id) == 0) return {.file = samples_.shards[id], .length = 0};
    const TarSamples::Member& image = samples_.images[images_.Begin(id)];
    uint64_t begin = image.offset, end = image.offset + image.length;
    for (const auto& arrays : samples_.arrays) {
      begin = std::min(begin, arrays[id].offset);
      end = std::max(end, arrays[id].offset + arrays[id].length);
    }
    return {.file = image.shard, .offset = begin, .length = end - begin};
  }

  ByteRange RangeOfPiece(uint64_t id, size_t piece) const override {
    const TarSamples::Member& further =
        images_.vary() ? samples_.images[images_.Begin(id) + piece] : samples_.masks[piece - 1][id];
    return {.file = further.shard, .offset = further.offset, .length = further.length};
  }

  Result<std::span<const uint8_t>> Unpack(uint64_t id, std::span<const uint8_t> record,
                                          std::span<uint8_t> rows) const override {
    if (images_.vary()) return record;
    const ByteRange range = RangeOf(id);
    for (size_t field = 0, next = 0; field < fields_.size(); ++field) {
      if (fields_[field].kind != Field::Kind::kLoaded) continue;
      const TarSamples::Member& array = samples_.arrays[next++][id];
      const std::span<uint8_t> row = rows.first(fields_[field].row_bytes());
      rows = rows.subspan(row.size());
      const Status copied = CopyNpy(PartOf(record, array, range), fields_[field], row);
      if (copied.ok()) continue;
      return InMember(copied.error(), array, std::string(paths_[range.file]), fields_[field].name);
    }
    return PartOf(record, samples_.images[id], range);
  }
  // Masks and further images are members as they are.
  Result<std::span<const uint8_t>> UnpackPiece(uint64_t /*id*/, size_t /*piece*/,
                                               std::span<const uint8_t> record) const override {
    return record;
  }

  void PathOf(uint32_t file, std::string& path) const override { path.assign(paths_[file]); }

  const ObjectVersions* objects() const override { return objects_ ? &*objects_ : nullptr; }

  void FixedRows(size_t field, std::span<const uint64_t> ids, void* rows) const override {
    if (fields_[field].is_label) {
      auto* label = static_cast<int64_t*>(rows);
      for (const uint64_t id : ids) *label++ = samples_.labels[id];
      return;
    }
    auto* text = static_cast<std::string_view*>(rows);
    const auto& column = samples_.columns[columns_[field]];
    for (const uint64_t id : ids) *text++ = column[id];
  }

  std::span<const uint8_t> View(size_t field, uint64_t id) const override {
    if (field < first_of_images_) return {};
    return of_images_.columns.View(field - first_of_images_, id);
  }
  uint32_t max_objects() const override { return of_images_.columns.max_objects(); }

  SkippedFiles Skipped() const override { return samples_.skipped; }
  const std::vector<std::string>& classes() const override { return of_images_.classes; }
  uint64_t Fingerprint() const override { return fingerprint_; }
  std::string Describe() const override { return described_; }

  uint64_t memory_bytes() const override {
    return sizeof(*this) + paths_.memory_bytes() + samples_.memory_bytes() +
           fields_.capacity() * sizeof(Field) + columns_.capacity() * sizeof(size_t) +
           images_.memory_bytes() + described_.capacity() + of_images_.bytes +
           (objects_ ? objects_->memory_bytes() : 0);
  }

 private:
  // Returns the index of each field of texts in TarSamples::columns; without meaning for others.
  static std::vector<size_t> ColumnsOf(std::span<const Field> fields) {
    std::vector<size_t> columns;
    size_t next = 0;
    for (const Field& field : fields) columns.push_back(IsString(field.dtype) ? next++ : 0);
    return columns;
  }

  // Returns the bytes of a member in the bytes of its sample's range; fewer if those are cut off.
  static std::span<const uint8_t> PartOf(std::span<const uint8_t> record,
                                         const TarSamples::Member& member, const ByteRange& range) {
    const size_t begin = std::min<size_t>(member.offset - range.offset, record.size());
    return record.subspan(begin, std::min<size_t>(member.length, record.size() - begin));
  }

  static uint64_t HashOfLengths(std::span<const TarSamples::Member> members, uint64_t hash) {
    for (const TarSamples::Member& member : members) {
      const uint32_t length = member.length;
      hash = Hash64({reinterpret_cast<const uint8_t*>(&length), sizeof(length)}, hash);
    }
    return hash;
  }

  // Hashes keys, images' and masks' lengths, labels, texts, objects, and the arrays' types, shapes
  // and lengths, but neither the names of archives nor where samples lie in them, which may change.
  uint64_t Hash() const {
    uint64_t hash = HashOfLengths(samples_.images, samples_.keys.Hash());
    hash = images_.Hash(hash);
    const std::span<const int64_t> labels = samples_.labels;
    hash = Hash64({reinterpret_cast<const uint8_t*>(labels.data()), labels.size_bytes()}, hash);
    size_t next_array = 0;
    for (size_t field = 1; field < first_of_images_; ++field) {
      if (fields_[field].is_label) continue;
      hash = Hash64(fields_[field].name, Hash64(DescribeRow(fields_[field]), hash));
      if (fields_[field].kind == Field::Kind::kMask) {
        hash = HashOfLengths(samples_.masks[field - 1], hash + fields_[field].fill);
        continue;
      }
      if (fields_[field].kind == Field::Kind::kLoaded) {
        hash = HashOfLengths(samples_.arrays[next_array++], hash);
        continue;
      }
      for (const std::string_view text : samples_.columns[columns_[field]]) {
        hash = Hash64(text, hash);
      }
    }
    return of_images_.Hash(hash);
  }

  const PathTable paths_;
  const ImageNumbers images_;
  const TarSamples samples_;
  const std::optional<ObjectVersions> objects_;  // none: the archives are files
  const std::vector<Field> fields_;
  const std::vector<size_t> columns_;  // ColumnsOf
  const ObjectColumns of_images_;
  const size_t first_of_images_;  // the first of their fields, which are the last ones
  const std::string described_;
  const uint64_t fingerprint_;
};

Error NoImageInArchives(const std::vector<std::string>& paths, const TarSamples& samples,
                        const std::string& image, bool varies) {
  const uint64_t skipped = samples.skipped.files();
  std::string cause = "no sample in " + std::to_string(paths.size()) +
                      Plural(paths.size(), " archive", " archives") + " has an image (" + image +
                      ")";
  if (skipped > 0) {
    cause += "; they " + std::string(varies ? "have " : "begin with ") + samples.skipped.Counts() +
             ", for example in " + samples.skipped.example;
  }
  return {.code = Code::kInvalidArgument,
          .cause = std::move(cause),
          .file = paths[0],
          .advice = std::string("Name the extensions of the images: image=") +
                    (varies ? "\"*.jpg;*.ppm\"" : "\"jpg;ppm\"")};
}

}  // namespace

Result<std::shared_ptr<const SampleSource>> Tar(const std::string& pattern,
                                                const TarOptions& options) {
  ASSIGN_OR_RETURN(std::vector<std::string> paths, ExpandShards(pattern, options.root));
  TRY(CheckThreads(options.threads));
  ASSIGN_OR_RETURN(const TarGrouping grouping, ParseGrouping(options));
  ASSIGN_OR_RETURN(IndexedArchives indexed, IndexArchives(paths, grouping, options));
  if (indexed.samples.images.empty()) {
    return NoImageInArchives(paths, indexed.samples, options.image, grouping.varies);
  }
  ImageNumbers images(std::exchange(indexed.samples.ends, {}));
  ASSIGN_OR_RETURN(ObjectColumns objects,
                   TakeObjects(indexed.samples, grouping, options.keyed, paths));
  ASSIGN_OR_RETURN(std::vector<Field> fields,
                   FieldsOf(indexed.samples, images, paths, options, objects.columns));
  return std::shared_ptr<const SampleSource>(
      std::make_shared<TarSource>(std::move(paths), std::move(indexed), std::move(images),
                                  std::move(objects), std::move(fields), "tar(" + pattern + ")"));
}

}  // namespace stoker
