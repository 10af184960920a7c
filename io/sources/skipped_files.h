// SkippedFiles: images, as far as their names tell, that a source leaves out.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace stoker {

// Files whose extension is one of images, and not among those that the source lists.
struct SkippedFiles {
  std::map<std::string, uint64_t> by_extension;  // ".gif", in lower case: how many
  std::string example;  // the first of them, by its path below the root; empty: there is none

  bool empty() const { return by_extension.empty(); }
  uint64_t files() const;

  // One more, and all of another part of the folder. The example does not depend on the order.
  void Add(std::string_view extension, const std::string& path);
  void Add(const SkippedFiles& others);

  // ".gif 10, .heic 2"
  std::string Counts() const;
  // "12 files that look like images are left out (.gif 10, .heic 2)": safe to print.
  std::string Summary() const;
  // The same with the example and with what to do; empty where there is none.
  std::string Warning() const;

  // As an index file has it. Unpack: none where the bytes are not those of Pack.
  std::string Pack() const;
  static std::optional<SkippedFiles> Unpack(std::string_view packed);

  uint64_t memory_bytes() const;  // on the heap, about

  friend bool operator==(const SkippedFiles&, const SkippedFiles&) = default;
};

// "Convert them to JPEG or PNG …": the advice wherever a folder has such files.
inline constexpr char kConvertSkipped[] =
    "Convert them to JPEG or PNG (ImageMagick: `mogrify -format png '*.gif[0]'`); rename JPEGs "
    "(.jfif, .jpe) to .jpg";

}  // namespace stoker
