// Lifecycle: when a producer's work may run.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>

#include "core/batch/batch.h"
#include "core/result/result.h"

namespace stoker {

// Work begins with Start, after Restart has set it up, and has ended when Halt returns; after Stop
// none begins. One thread at a time ends it. Thread-safe; nothing waits while holding its lock.
class Lifecycle {
 public:
  struct Work {
    std::function<Status()> begin;   // lets threads begin work
    std::function<void()> give_up;   // drops work that waits, which could wait for other loaders
    std::function<bool()> no_more;   // undoes `begin`; both return false if they take longer
    std::function<bool()> complete;  // than an interrupt may wait. Waits for work in progress
  };
  explicit Lifecycle(Work work) : work_(std::move(work)) {}

  // Set once. Samples in progress end without a row.
  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }
  // Whether work is being ended: samples get no substitutes, and do not wait for memory. If one
  // thread passes a sample on and then calls this, while another ends the work and then gives up
  // the samples passed on, at least one of them sees the other's change.
  bool ending() const { return ending_.load(std::memory_order_seq_cst); }

  // Begins work, unless it runs already. Cancelled after Stop.
  Status Start();

  // Calls `set_up`, which prepares the next work. Precondition: Halt. Cancelled after Stop.
  Status Restart(const std::function<void()>& set_up);

  // Ends work: waits for samples in progress, which are few, and for calls of the program's own
  // code, which may hang. Cancelled if `interrupt` ended the wait; then call it again. `interrupt`
  // is asked without a lock, because it may stop the loader.
  Status Halt(const Interrupt& interrupt = {});
  // Returns false if it took longer than an interrupt may wait.
  [[nodiscard]] bool TryHalt();

  // No work begins from now on. Calls `cancel`; waits for nothing.
  void Stop(const std::function<void()>& cancel);

 private:
  bool EndWork();

  const Work work_;
  std::mutex mutex_;
  std::condition_variable halted_;
  bool halting_ = false;  // a thread is in EndWork. Under mutex_
  bool running_ = false;  // changed under mutex_, or by the thread that set halting_
  std::atomic<bool> ending_{false};
  std::atomic<bool> stopped_{false};  // set under mutex_
};

}  // namespace stoker
