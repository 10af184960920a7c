// SkippedFiles: the image files that a source skips because of their extensions.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace stoker {

// Files with an image extension that the source does not list.
struct SkippedFiles {
  std::map<std::string, uint64_t> by_extension;  // counts, by ".gif" in lower case
  std::string example;                           // the first path below the root; empty: none

  bool empty() const { return by_extension.empty(); }
  uint64_t files() const;

  // Adds one file, or those of another part of the folder. The example does not depend on the
  // order.
  void Add(std::string_view extension, const std::string& path);
  void Add(const SkippedFiles& others);

  // ".gif 10, .heic 2"
  std::string Counts() const;
  // "12 image files are skipped, because … (.gif 10, .heic 2)". Safe to print.
  std::string Summary() const;
  // The summary with the example and advice; empty if nothing was skipped.
  std::string Warning() const;

  // The form in an index file. Unpack returns nullopt for bytes that Pack cannot have written.
  std::string Pack() const;
  static std::optional<SkippedFiles> Unpack(std::string_view packed);

  uint64_t memory_bytes() const;  // on the heap, approximately

  friend bool operator==(const SkippedFiles&, const SkippedFiles&) = default;
};

// The advice about skipped files.
inline constexpr char kConvertSkipped[] =
    "Convert them to JPEG or PNG (ImageMagick: `mogrify -format png '*.gif[0]'`); rename JPEGs "
    "(.jfif, .jpe) to .jpg";

}  // namespace stoker
