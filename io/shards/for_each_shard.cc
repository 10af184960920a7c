#include "io/shards/for_each_shard.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <new>
#include <utility>

#include "core/system/machine.h"
#include "core/system/start_thread.h"
#include "io/remote/object_url.h"

namespace stoker {

namespace {

Status IndexShard(const std::vector<std::string>& paths, size_t shard,
                  const std::function<Status(size_t)>& index) {
  try {
    return index(shard);
  } catch (const std::bad_alloc&) {
    return Error{Code::kResourceExhausted, "out of memory for the index", paths[shard]};
  }
}

// Threads that wait for a server need no core.
int UsualThreads(const std::vector<std::string>& paths) {
  constexpr int kForObjects = 16;
  const int cores = AllottedCores();
  return std::ranges::any_of(paths, IsObjectUrl) ? std::max(cores, kForObjects) : cores;
}

}  // namespace

Status ForEachShard(const std::vector<std::string>& paths, int threads,
                    const std::function<Status(size_t shard)>& index) {
  std::atomic<size_t> next{0};
  std::atomic<bool> failed{false};
  std::mutex mutex;
  Status first;  // guarded by `mutex`, as is its shard
  size_t first_shard = paths.size();
  const auto wanted = static_cast<size_t>(threads == 0 ? UsualThreads(paths) : threads);
  InParallel(static_cast<int>(std::min(paths.size(), wanted)), [&] {
    while (!failed) {
      const size_t shard = next.fetch_add(1);
      if (shard >= paths.size()) return;
      Status status = IndexShard(paths, shard, index);
      if (status.ok()) continue;
      failed = true;
      const std::lock_guard lock(mutex);
      if (shard > first_shard) continue;
      first_shard = shard;
      first = std::move(status);
    }
  });
  return first;
}

}  // namespace stoker
