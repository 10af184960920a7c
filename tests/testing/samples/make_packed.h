// Makes packed sets of files that are stored as they are.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace stoker::testing {

using NamedFiles = std::vector<std::pair<std::string, std::string>>;  // paths below a folder, bytes

// Writes the shards, with so many files each, and the index to `folder`, which exists.
void MakePackedSet(const std::string& folder, const NamedFiles& files, size_t files_a_shard = 1000);

}  // namespace stoker::testing
