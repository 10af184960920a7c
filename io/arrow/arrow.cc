#include "io/arrow/arrow.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/result/plural.h"
#include "core/result/try.h"
#include "core/result/utf8.h"
#include "core/system/machine.h"
#include "io/arrow/arrow_batches.h"
#include "io/arrow/arrow_columns.h"
#include "io/arrow/arrow_rows.h"
#include "io/arrow/huggingface.h"
#include "io/files/input_file.h"
#include "io/ranges/range_source.h"
#include "io/remote/object_version.h"
#include "io/shards/for_each_shard.h"
#include "io/shards/shard_pattern.h"

namespace stoker {

namespace {

struct ArrowShard {
  ArrowColumns columns;
  ArrowTable table;
};

// The rows of all files together.
struct ArrowRows {
  ArrowShard all;
  std::optional<ObjectVersions> objects;
};

Result<ArrowShard> ReadArrowFile(const std::string& path, uint32_t number,
                                 const ArrowOptions& options, ObjectVersion& version) {
  ASSIGN_OR_RETURN(InputFile file, InputFile::Open(path));
  if (!options.cache.folder.empty()) TRY(file.Identify());
  if (file.version() != nullptr) version = *file.version();
  ASSIGN_OR_RETURN(const FileStamp stamp, file.Stamp());
  ASSIGN_OR_RETURN(ArrowBatches batches, ArrowBatches::Open(file, stamp));
  ArrowShard shard;
  Result<ArrowColumns> columns = ChooseArrowColumns(batches, options);
  if (!columns.ok()) return std::move(columns).error().WithFile(path);
  shard.columns = *std::move(columns);
  shard.table.columns.resize(shard.columns.columns.size() - 1);
  ArrowBatch batch;
  for (;;) {
    ASSIGN_OR_RETURN(const bool more, batches.Next(batch));
    if (!more) break;
    TRY(AddBatch(file, number, batch, shard.table.rows(), shard.columns, shard.table));
  }
  ASSIGN_OR_RETURN(const FileStamp after, file.Stamp());
  if (!stamp.is_written(after)) return shard;
  return Error{.code = Code::kDataLoss,
               .cause = "the file changed while it was read",
               .file = path,
               .offset = 0,
               .advice = "Open it once it is complete"};
}

// InvalidArgument if a file's columns are not those of the first one.
Status CheckAlike(const ArrowColumns& first, const ArrowColumns& other, const std::string& path,
                  const std::string& first_path) {
  const auto differ = [&](const std::string& what) {
    return Error{.code = Code::kInvalidArgument,
                 .cause = what + " in " + Printable(first_path),
                 .file = path,
                 .advice = "Open files of one dataset together"};
  };
  if (first.has_label != other.has_label) {
    return differ(std::string("the file has ") + (other.has_label ? "labels" : "no labels") +
                  ", unlike those");
  }
  if (first.class_names != other.class_names) return differ("the class names differ from those");
  if (first.columns[0].is_list() != other.columns[0].is_list()) {
    return differ(std::string("rows have ") +
                  (other.columns[0].is_list() ? "lists of images" : "one image") +
                  ", unlike those");
  }
  for (size_t i = 1; i < first.columns.size(); ++i) {
    const ArrowColumn& a = first.columns[i];
    const ArrowColumn& b = other.columns[i];
    const bool integer_labels = a.name == "label" && !IsString(a.dtype) && !IsString(b.dtype);
    if (a.row_shape != b.row_shape || (a.dtype != b.dtype && !integer_labels)) {
      return differ("column '" + Printable(b.in_file) + "' is " +
                    DescribeRow({.name = {}, .dtype = b.dtype, .row_shape = b.row_shape}) +
                    ", unlike the " +
                    DescribeRow({.name = {}, .dtype = a.dtype, .row_shape = a.row_shape}));
    }
  }
  return {};
}

Result<ArrowRows> ReadArrowFiles(const std::vector<std::string>& paths,
                                 const ArrowOptions& options) {
  ASSIGN_OR_RETURN(const std::shared_ptr<DiskCache> cache, OpenObjectCache(options.cache));
  std::vector<ArrowShard> shards(paths.size());
  std::vector<ObjectVersion> versions(paths.size());
  TRY(ForEachShard(paths, options.threads, [&](size_t shard) -> Status {
    ASSIGN_OR_RETURN(shards[shard], ReadArrowFile(paths[shard], static_cast<uint32_t>(shard),
                                                  options, versions[shard]));
    return {};
  }));
  ArrowShard all = std::move(shards[0]);
  for (size_t i = 1; i < shards.size(); ++i) {
    TRY(CheckAlike(all.columns, shards[i].columns, paths[i], paths[0]));
    all.table.Append(std::exchange(shards[i].table, {}));
  }
  all.table.images.ShrinkToFit();
  if (all.table.rows() != 0) {
    return ArrowRows{std::move(all), ObjectVersions::Of(paths, versions, cache)};
  }
  return Error{.code = Code::kInvalidArgument,
               .cause = "there is no row in " + std::to_string(paths.size()) +
                        Plural(paths.size(), " file", " files"),
               .file = paths[0]};
}

// Replaces text by the numbers of its values in sorted order, and returns the sorted values.
std::vector<std::string> NumberClasses(ArrowValues& labels) {
  std::map<std::string_view, int64_t> numbers;
  for (const std::string_view text : labels.texts.rows()) numbers.emplace(text, 0);
  std::vector<std::string> classes;
  for (auto& [text, number] : numbers) {
    number = static_cast<int64_t>(classes.size());
    classes.emplace_back(text);
  }
  labels.numbers.resize(labels.texts.size() * sizeof(int64_t));
  uint8_t* to = labels.numbers.data();
  for (const std::string_view text : labels.texts.rows()) {
    std::memcpy(to, &numbers[text], sizeof(int64_t));
    to += sizeof(int64_t);
  }
  labels.texts = {};
  return classes;
}

// Returns the columns' rows in the form that a source takes.
std::vector<ArrayColumn> ViewColumns(const ArrowColumns& columns,
                                     const std::vector<ArrowValues>& values, uint64_t samples) {
  std::vector<ArrayColumn> views;
  for (size_t i = 1; i < columns.columns.size(); ++i) {
    const ArrowColumn& column = columns.columns[i];
    const ArrowValues& rows = values[i - 1];
    const bool is_label = columns.has_label && i == 1;
    if (IsString(column.dtype) && !is_label) {
      views.push_back(rows.texts.Column(column.name, column.dtype));
    } else {
      const DType dtype = is_label ? DType::kI64 : column.dtype;
      views.push_back({column.name, dtype, column.row_shape, rows.numbers.data(), samples});
    }
  }
  return views;
}

// Returns the paths of the files. A folder is replaced by the files of the dataset that was saved
// in it.
Result<std::vector<std::string>> FilesOf(const std::string& pattern, const std::string& root) {
  ASSIGN_OR_RETURN(const std::vector<std::string> paths, ExpandShards(pattern, root));
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code failed;
    if (!std::filesystem::is_directory(path, failed)) {
      files.push_back(path);
      continue;
    }
    ASSIGN_OR_RETURN(const std::vector<std::string> saved, SavedDatasetFiles(path));
    files.insert(files.end(), saved.begin(), saved.end());
  }
  return files;
}

}  // namespace

Result<std::shared_ptr<const SampleSource>> Arrow(const std::string& pattern,
                                                  const ArrowOptions& options) {
  TRY(CheckThreads(options.threads));
  ASSIGN_OR_RETURN(const std::vector<std::string> paths, FilesOf(pattern, options.root));
  ASSIGN_OR_RETURN(ArrowRows rows, ReadArrowFiles(paths, options));
  ArrowShard& all = rows.all;
  const auto values = std::make_shared<std::vector<ArrowValues>>(std::move(all.table.columns));
  const uint64_t samples = all.table.rows();
  all.table.ends.shrink_to_fit();
  RangeSourceParts parts{.paths = PathTable(paths),
                         .images = std::move(all.table.images),
                         .numbers = ImageNumbers(std::move(all.table.ends)),
                         .has_label = all.columns.has_label,
                         .class_names = std::move(all.columns.class_names),
                         .described = "arrow(" + pattern + ")",
                         .objects = std::move(rows.objects)};
  if (parts.has_label && IsString(all.columns.columns[1].dtype)) {
    parts.class_names = NumberClasses(values->front());
  }
  for (ArrowValues& column : *values) {
    column.numbers.shrink_to_fit();
    column.texts.ShrinkToFit();
    parts.column_bytes += column.numbers.capacity() + column.texts.memory_bytes();
  }
  ASSIGN_OR_RETURN(parts.columns,
                   MemoryColumns::Make(ViewColumns(all.columns, *values, samples), values));
  return MakeRangeSource(std::move(parts));
}

}  // namespace stoker
