// Lists the contents of a packed set, for `stoker pack --list`.
#pragma once

#include <functional>
#include <string_view>

#include "core/result/result.h"
#include "io/packed/packed_index.h"

namespace stoker {

using TextWriter = std::function<Status(std::string_view piece)>;

// A line for each photograph: its id, path, size in bytes and as stored, how it is stored, width ×
// height, and where. Written piece by piece; the first error of `write` ends it.
Status WriteSetText(const PackedIndex& index, const TextWriter& write);

// One JSON object (docs/cli.md) with the same.
Status WriteSetJson(const std::string& source, const PackedIndex& index, const TextWriter& write);

}  // namespace stoker
