// ThreadsSeen: counts the distinct threads that have run tasks, and sets each up as a worker.
#pragma once

#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "core/system/start_thread.h"

namespace stoker {

// Note() costs one comparison unless the thread that uses the worker number has changed.
class ThreadsSeen {
 public:
  explicit ThreadsSeen(int workers) : last_(static_cast<size_t>(workers)) {}

  // Called on the running thread; no two threads use one worker number at a time. A new thread
  // becomes a background thread (core/system/start_thread.h).
  void Note(int worker) {
    const std::thread::id self = std::this_thread::get_id();
    std::thread::id& last = last_[static_cast<size_t>(worker)].id;
    if (last == self) return;
    last = self;
    std::lock_guard lock(mutex_);
    if (seen_.insert(self).second) BecomeBackgroundThread("stoker/worker");
  }

  int workers() const { return static_cast<int>(last_.size()); }
  int count() const {
    std::lock_guard lock(mutex_);
    return static_cast<int>(seen_.size());
  }

 private:
  struct alignas(64) Last {
    std::thread::id id;
  };
  std::vector<Last> last_;
  mutable std::mutex mutex_;
  std::set<std::thread::id> seen_;
};

}  // namespace stoker
