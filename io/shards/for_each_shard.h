// Indexes shards with several threads.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "core/result/result.h"

namespace stoker {

// Calls `index` with the number of each shard, on up to `threads` threads at a time (0 means the
// cores allotted, and 16 if there are URLs), and returns the error of the first shard that has one.
// Shards are begun in order, so all shards before that one are complete; after an error none is
// begun. Running out of memory in `index` is ResourceExhausted, with the shard.
Status ForEachShard(const std::vector<std::string>& paths, int threads,
                    const std::function<Status(size_t shard)>& index);

}  // namespace stoker
