// Makes a source of images that are byte ranges of files, with all other fields in memory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/memory/memory_columns.h"
#include "io/remote/object_version.h"
#include "io/source/image_numbers.h"
#include "io/source/path_table.h"
#include "io/source/range_table.h"
#include "io/source/source.h"

namespace stoker {

struct RangeSourceParts {
  PathTable paths{};        // by the ranges' file
  RangeTable images{};      // by sample, or by number if the number of images varies
  ImageNumbers numbers{};   // at most kMostPieces of a sample
  MemoryColumns columns{};  // fields other than the image, with a row for each sample
  bool has_label = false;   // whether the first of them is the label
  std::vector<std::string> class_names{};
  std::string described{};
  uint64_t column_bytes = 0;                // of the columns' memory
  std::optional<ObjectVersions> objects{};  // empty if the files are local
};

// The field "image" comes first, then the columns. A sample without images has the path ""; an
// image of several has a name, "image 2 of row 17 of the source". Files with the same lengths of
// images and the same columns have the same fingerprint.
std::shared_ptr<const SampleSource> MakeRangeSource(RangeSourceParts parts);

}  // namespace stoker
