// A lease of a memory manager that has no other, and an executor that the test runs.
#pragma once

#include <deque>
#include <memory>

#include "engine/memory/memory_manager.h"
#include "engine/runtime/executor.h"

namespace stoker::testing {

// Its samples may take half of `budget`.
class OneLease {
 public:
  explicit OneLease(uint64_t budget = 64 << 20) : manager_(budget, 1, [] {}) {}
  MemoryLease& operator*() { return *lease_; }
  MemoryLease* operator->() { return lease_.get(); }

 private:
  MemoryManager manager_;
  const std::unique_ptr<MemoryLease> lease_ =
      manager_.Lease({.slot_bytes = 1000, .first_depth = 1, .max_depth = 4}, 1).value();
};

// Runs tasks when the test says so.
class ManualExecutor final : public Executor {
 public:
  explicit ManualExecutor(int workers) : workers_(workers) {}
  void Submit(const Task& task) override { tasks_.push_back(task); }
  int concurrency() const override { return workers_; }
  const char* name() const override { return "manual"; }
  int threads_seen() const override { return 1; }

  size_t pending() const { return tasks_.size(); }
  // Runs the first task; false: there is none.
  bool RunOne(int worker = 0) {
    if (tasks_.empty()) return false;
    const Task task = tasks_.front();
    tasks_.pop_front();
    task.run(task.context, task.argument, worker);
    return true;
  }

 private:
  const int workers_;
  std::deque<Task> tasks_;
};

}  // namespace stoker::testing
