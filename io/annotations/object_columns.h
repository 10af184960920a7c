// ObjectColumns: columns of objects in memory that a source keeps itself.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/result/result.h"
#include "io/annotations/object_values.h"
#include "io/memory/memory_columns.h"

namespace stoker {

// Finishes the values of all samples, and returns their columns, which are valid as long as
// `values` is. Sets `classes` to those of "labels" that are text, if there are any.
// InvalidArgument, with `path`: classes next to the label of images, and the errors of
// ObjectValues::Finish.
Result<std::vector<ArrayColumn>> FinishObjects(std::vector<ObjectValues>& values, bool has_label,
                                               const std::string& path,
                                               std::vector<std::string>& classes);

struct ObjectColumns {
  MemoryColumns columns;
  std::vector<std::string> classes;  // of "labels" that are text
  uint64_t bytes = 0;                // of memory

  // Takes the values of all samples. InvalidArgument, with `path`: different numbers of objects,
  // and the errors of FinishObjects and MemoryColumns::Make.
  static Result<ObjectColumns> Take(std::vector<ObjectValues> values, bool has_label,
                                    const std::string& path);

  // Returns a hash of classes and columns that continues `hash`; the same one if there are none.
  uint64_t Hash(uint64_t hash) const;
};

}  // namespace stoker
