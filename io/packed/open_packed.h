// Opens a packed set for tools, which use its index in addition to the source.
#pragma once

#include <memory>
#include <string>

#include "core/result/result.h"
#include "io/packed/packed.h"
#include "io/packed/packed_index.h"
#include "io/source/source.h"

namespace stoker {

// Whether the folder has the index of a packed set, or its first shard, by their names.
bool IsPackedSet(const std::string& folder);

// Opens the index in the folder of a packed set, with the errors of Packed.
Result<std::shared_ptr<const PackedIndex>> OpenPackedIndex(const std::string& folder);

// Makes the source from an index that is open.
Result<std::shared_ptr<const SampleSource>> Packed(const std::string& folder,
                                                   std::shared_ptr<const PackedIndex> index,
                                                   const PackedOptions& options = {});

}  // namespace stoker
