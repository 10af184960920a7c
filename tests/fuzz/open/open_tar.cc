#include "tests/fuzz/open/open_tar.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result/utf8.h"
#include "io/files/input_file.h"
#include "io/shards/shard_index_file.h"
#include "io/shards/shard_pattern.h"
#include "io/tar/tar.h"
#include "io/tar/tar_index_file.h"
#include "io/tar/tar_members.h"
#include "io/tar/tar_samples.h"
#include "io/tar/tar_text_file.h"
#include "tests/fuzz/decode/fuzzed_rows.h"
#include "tests/fuzz/fuzzed_file.h"

namespace stoker::testing {
namespace {

const std::array<std::string, 2> kTexts = {"txt", "json"};  // of a column, and of objects

void VisitMembers(const TarMembers& all, const FileStamp& stamp, const std::string& path) {
  const std::optional<TarMembers> again = UnpackTarIndex(PackTarIndex(all, stamp), stamp);
  Require(again && again->names == all.names && again->labels == all.labels,
          "an index gives members back");
  TarOptions options;
  if (!all.texts.empty()) {
    for (size_t i = 0; i < kTexts.size(); ++i) {
      const std::optional<TarMembers::Texts> texts =
          UnpackTarTexts(PackTarTexts(all.texts[i], stamp), stamp, all, kTexts[i]);
      Require(texts && texts->bytes == all.texts[i].bytes, "an index gives texts back");
    }
    options = {.label = "",
               .columns = {{"text", kTexts[0]}},
               .keyed = ParseKeyedColumns("mask,mask,png\nboxes,boxes,json:b").value()};
  }
  const Result<TarSamples> samples = GroupMembers(all, ParseGrouping(options).value(), path, 0);
  if (!samples.ok()) {
    Require(samples.error().file == path && samples.error().offset.has_value(),
            "errors name archive and offset");
    return;
  }
  for (const TarSamples::Member& image : samples->images) {
    Require(image.offset <= stamp.bytes && image.length <= stamp.bytes - image.offset,
            "images lie in the archive");
  }
  for (const auto& masks : samples->masks) {
    Require(masks.size() == samples->images.size(), "a mask of each image");
    for (const TarSamples::Member& mask : masks) {
      Require(mask.offset <= stamp.bytes && mask.length <= stamp.bytes - mask.offset,
              "masks lie in the archive");
    }
  }
  Require(samples->keys.size() == samples->images.size(), "a key of each image");
  Require(samples->labels.empty() || samples->labels.size() == samples->images.size(),
          "a label of each image, or none");
  for (const auto& rows : samples->columns) {
    Require(rows.size() == samples->images.size(), "a text of each image");
    for (const std::string_view text : rows) Require(IsUtf8(text), "text is UTF-8");
  }
}

// Samples of any number of images.
void VisitNumbered(const TarMembers& all, const FileStamp& stamp, const std::string& path) {
  TarOptions options{.image = "*.jpg;*.png", .label = ""};
  if (!all.texts.empty()) options.columns = {{"text", kTexts[0]}, {"json", kTexts[1]}};
  const Result<TarSamples> samples = GroupMembers(all, ParseGrouping(options).value(), path, 0);
  if (!samples.ok()) {
    Require(samples.error().file == path && samples.error().offset.has_value(),
            "errors name archive and offset");
    return;
  }
  Require(samples->ends.size() == samples->keys.size() &&
              samples->shards.size() == samples->keys.size(),
          "each sample has its images and its shard");
  uint64_t begin = 0;
  for (const uint64_t end : samples->ends) {
    Require(begin <= end && end - begin <= kMostPieces, "the number of images is bounded");
    begin = end;
  }
  Require(begin == samples->images.size(), "each image belongs to a sample");
  for (const TarSamples::Member& image : samples->images) {
    Require(image.offset <= stamp.bytes && image.length <= stamp.bytes - image.offset,
            "images lie in the archive");
  }
  for (const auto& rows : samples->columns) {
    Require(rows.size() == samples->keys.size(), "a text of each sample");
  }
}

// An index file of the texts of two members, regardless of its content.
void VisitTexts(std::span<const uint8_t> bytes) {
  constexpr FileStamp kStamp{.bytes = 1 << 20, .modified_ns = 1};
  std::vector<uint8_t> file(bytes.begin(), bytes.end());
  (void)SignShardIndex(file, kStamp);
  const TarMembers all{{{512, 3, 5}, {2048, 0, 10}, {4096, 7, 15}}, "1.jpg1.txt2.txt", {}};
  const auto texts = UnpackTarTexts(file, kStamp, all, kTexts[0]);
  if (texts) Require((*texts)[0].empty() && (*texts)[1].size() == 7, "texts have their lengths");
}

}  // namespace

void OpenFuzzedTar(std::span<const uint8_t> bytes) {
  constexpr std::string_view kMagic = "STKTARIX";
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.starts_with("STKTARTX")) return VisitTexts(bytes);
  if (text.starts_with(kMagic)) {
    constexpr FileStamp kStamp{.bytes = 1 << 20, .modified_ns = 1};
    std::vector<uint8_t> file(bytes.begin(), bytes.end());
    (void)SignShardIndex(file, kStamp);
    const std::optional<TarMembers> members = UnpackTarIndex(file, kStamp);
    if (members) {
      VisitMembers(*members, kStamp, "archive");
      VisitNumbered(*members, kStamp, "archive");
    }
    return;
  }
  static FuzzedFile fuzzed("tar");
  const std::string& path = fuzzed.Write(bytes);
  FileStamp stamp;
  const Result<TarMembers> members = ReadTarMembers(InputFile::Open(path).value(), stamp, kTexts);
  if (members.ok()) {
    VisitMembers(*members, stamp, path);
    VisitNumbered(*members, stamp, path);
  } else {
    Require(members.error().file == path, "errors name the archive");
  }
}

void ExpandFuzzedShards(std::span<const uint8_t> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const Result<std::vector<std::string>> paths = ExpandBraces(text);
  if (paths.ok()) {
    Require(!paths->empty() && paths->size() <= kMaxShards, "the number of paths is bounded");
  }
  const std::string_view name = text.substr(0, text.find('\n'));
  const std::string quoted = QuoteShard(name);
  const Result<std::vector<std::string>> same = ExpandBraces(quoted);
  Require(same.ok() && same->size() == 1 && same->front() == quoted, "quoted braces are plain");
  Require(MatchesWildcards(name, quoted), "a quoted name matches itself");
  Require(MatchesWildcards(name, quoted + "*"), "a star may stand for nothing");
  if (name.size() < text.size()) (void)MatchesWildcards(name, text.substr(name.size() + 1));
}

}  // namespace stoker::testing
