// Makes packed sets of files that are stored as they are.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "io/packed/packed_format.h"

namespace stoker::testing {

using NamedFiles = std::vector<std::pair<std::string, std::string>>;  // paths below a folder, bytes

// Writes shards of `files_a_shard` files, and the index, to `folder`, which exists. With fields
// the files are the pieces of samples, one sample after another.
void MakePackedSet(const std::string& folder, const NamedFiles& files, size_t files_a_shard = 1000,
                   const std::vector<packed_set::PieceField>& fields = {});

// The fields "image" and "mask", whose fill is 255.
std::vector<packed_set::PieceField> ImageAndMask();

}  // namespace stoker::testing
