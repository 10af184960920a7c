// MemorySource: a source whose samples are rows in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "io/memory/memory_columns.h"
#include "io/source/source.h"

namespace stoker {

struct MemorySourceOptions {
  std::string kind;               // for messages: "arrays"
  std::optional<size_t> label{};  // the column that is the label
  uint64_t owned_bytes = 0;       // bytes of the columns' memory, if the source owns it
};

// Makes each column a field. Preconditions: there is a column, and `label` is the index of one.
std::shared_ptr<const SampleSource> MakeMemorySource(MemoryColumns columns,
                                                     MemorySourceOptions options);

}  // namespace stoker
