// The path of a shard's index file.
#pragma once

#include <string>
#include <string_view>

#include "io/files/input_file.h"
#include "io/shards/shard_index_file.h"

namespace stoker::testing {

// Returns the path of the index file for a file as it is now.
inline std::string ShardIndexOf(const std::string& shard, std::string_view part = {}) {
  return ShardIndexPath(shard, InputFile::Open(shard).value().Stamp().value(), part);
}

}  // namespace stoker::testing
