#include "bindings/cli/verify/good_samples.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/result/try.h"
#include "core/result/utf8.h"
#include "core/system/output_file.h"
#include "io/source/image_numbers.h"

namespace stoker {

namespace {

using GoodJson = nlohmann::ordered_json;

constexpr size_t kWriteBytes = 1 << 20;  // at a time
constexpr char kByIds[] =
    "Take the ids of the bad samples from --json, and leave them out with subset()";

bool EndsAsJsonLines(std::string_view path) {
  std::string ending = std::filesystem::path(path).extension();
  std::ranges::transform(ending, ending.begin(), [](unsigned char c) { return std::tolower(c); });
  return ending == ".jsonl" || ending == ".ndjson";
}

Error NoManifest(const SampleSource& source, const std::string& why) {
  return {.code = Code::kInvalidArgument,
          .cause = "a list of the good samples of " + source.Describe() + " would " + why,
          .advice = kByIds};
}

// Checks that a line with a path and a label describes a sample completely.
Status CheckWholeFiles(const SampleSource& source) {
  TRY(CheckFixedImages("a list of the good samples", source));
  if (source.has_records() || (source.size() != 0 && source.RangeOf(0).length != kUnknownLength)) {
    return NoManifest(source, "not say which part of a file a sample is");
  }
  for (const Field& field : source.fields().subspan(1)) {
    if (!field.is_label) return NoManifest(source, "lose the column '" + field.name + "'");
    const bool written =
        field.kind == Field::Kind::kFixed &&
        (field.dtype == DType::kI64 || field.dtype == DType::kF64 || field.dtype == DType::kBool);
    if (!written) return NoManifest(source, "lose the type of the label, " + DescribeRow(field));
  }
  return {};
}

Error NotInJson(const std::string& what, const std::string& path, std::string advice) {
  return {.code = Code::kInvalidArgument,
          .cause = what + ", which JSON cannot represent",
          .file = path,
          .advice = std::move(advice)};
}

// Writes samples as lines of a manifest. One thread at a time.
class GoodLines {
 public:
  explicit GoodLines(const SampleSource& source) : source_(source), label_(source.label()) {
    if (label_) row_.resize(source.fields()[*label_].row_bytes());
  }

  Result<std::string> Of(uint64_t id) {
    ASSIGN_OR_RETURN(const std::string path, AbsolutePathOf(id));
    if (!IsUtf8(path)) return NotInJson("the name is not UTF-8", path, "Rename the file");
    GoodJson line = {{"path", path}};
    if (label_) {
      ASSIGN_OR_RETURN(line["label"], LabelOf(id, path));
    }
    return line.dump() + "\n";
  }

 private:
  // The working folder is not resolved, nor is "..": that would change where links lead.
  Result<std::string> AbsolutePathOf(uint64_t id) {
    std::string path;
    source_.PathOf(source_.RangeOf(id).file, path);
    if (path.starts_with('/')) return path;
    if (folder_.empty()) {
      std::error_code failed;
      folder_ = std::filesystem::current_path(failed).string() + "/";
      if (failed) return SystemError(failed.value(), "the working folder cannot be found", path);
    }
    return folder_ + path;
  }

  Result<GoodJson> LabelOf(uint64_t id, const std::string& path) {
    const Field& field = source_.fields()[*label_];
    if (!source_.classes().empty()) {
      const auto label = static_cast<size_t>(source_.LabelOf(id));  // -1 is beyond all
      if (label >= source_.classes().size()) {
        return NotInJson("the sample has no class", path, kByIds);
      }
      const std::string& name = source_.classes()[label];
      if (IsUtf8(name)) return GoodJson(name);
      return NotInJson("the class '" + Printable(name) + "' is not UTF-8", path,
                       "Write the names of classes as UTF-8");
    }
    source_.FixedRows(*label_, {&id, 1}, row_.data());
    const auto value = [&](size_t at) -> GoodJson {
      if (field.dtype == DType::kBool) return row_[at] != 0;
      if (field.dtype == DType::kI64) return As<int64_t>(at);
      return As<double>(at);
    };
    const size_t values = row_.size() / SizeOf(field.dtype);
    for (size_t i = 0; field.dtype == DType::kF64 && i < values; ++i) {
      if (!std::isfinite(As<double>(i))) {
        return NotInJson("the label is not a finite number", path, kByIds);
      }
    }
    if (field.row_shape.empty()) return value(0);
    GoodJson vector = GoodJson::array();
    for (size_t i = 0; i < values; ++i) vector.push_back(value(i));
    return vector;
  }

  template <typename T>
  T As(size_t index) const {
    T value;
    std::memcpy(&value, row_.data() + index * sizeof(T), sizeof(T));
    return value;
  }

  const SampleSource& source_;
  const std::optional<size_t> label_;
  std::vector<uint8_t> row_;  // of the label
  std::string folder_;        // the working folder, with a slash; empty means not looked up yet
};

// Counts the samples of each class.
class ClassCounts {
 public:
  explicit ClassCounts(const SampleSource& source)
      : source_(source), all_(source.classes().size()), good_(all_.size()) {}

  void Add(uint64_t id, bool good) {
    if (all_.empty()) return;
    const auto label = static_cast<size_t>(source_.LabelOf(id));
    ++all_[label];
    if (good) ++good_[label];
  }

  std::vector<std::string> MissingClasses() const {
    std::vector<std::string> names;
    for (size_t i = 0; i < all_.size(); ++i) {
      if (all_[i] != 0 && good_[i] == 0) names.push_back(source_.classes()[i]);
    }
    return names;
  }

 private:
  const SampleSource& source_;
  std::vector<uint64_t> all_, good_;
};

}  // namespace

Status CheckGoodSamples(const SampleSource& source, const std::string& path) {
  if (!EndsAsJsonLines(path)) {
    return Error{.code = Code::kInvalidArgument,
                 .cause = "the list of good samples is a manifest of JSON lines, and '" +
                          Printable(path) + "' does not end as one's name",
                 .advice = "Give it a name that ends in .jsonl or .ndjson"};
  }
  TRY(CheckWholeFiles(source));
  TRY(CheckCanWrite(path));
  GoodLines lines(source);
  for (uint64_t id = 0; id < source.size(); ++id) {
    const Result<std::string> line = lines.Of(id);
    if (!line.ok()) return line.error();
  }
  return {};
}

Result<GoodSamples> WriteGoodSamples(const SampleSource& source, const BadSampleList& bad,
                                     const std::string& path) {
  GoodSamples written{.samples = source.size() - bad.size()};
  if (written.samples == 0) return written;
  ASSIGN_OR_RETURN(OutputFile file, OutputFile::Open(path));
  GoodLines lines(source);
  ClassCounts classes(source);
  std::string text;
  const auto flush = [&] {
    Status status = file.Write({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
    text.clear();
    return status;
  };
  size_t next = 0;  // of `bad`
  for (uint64_t id = 0; id < source.size(); ++id) {
    const bool good = next == bad.size() || bad[next].id != id;
    classes.Add(id, good);
    if (!good) {
      ++next;
      continue;
    }
    ASSIGN_OR_RETURN(const std::string line, lines.Of(id));
    text += line;
    if (text.size() >= kWriteBytes) TRY(flush());
  }
  TRY(flush());
  TRY(file.Commit(OutputFile::Sync::kToDisk));
  written.lost_classes = classes.MissingClasses();
  return written;
}

}  // namespace stoker
