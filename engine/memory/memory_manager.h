// MemoryManager: owns the working memory of a Runtime and divides it among the loaders.
//
//   budget ─┬─ batches   slots in production           when the line moves: memory_plan.h
//           └─ samples   read buffers, workspaces
//
// Each loader has one MemoryLease. Memory for batches and workers are divided among the leases by
// need, weight and minimum (fair_share.h).
//
// Waiting. A sample that finds no room joins the end of the wait list, which all loaders share.
// While the list is not empty, no loader begins another sample, so the work in progress ends soon,
// because none of it waits for a consumer. Then every loader frees its idle memory, and the first
// sample of the list is read and decoded again, alone. If it finds no room even then, with the
// samples' whole share to itself, it never will: whether a sample is refused depends on the budget
// and on its file, not on other work. A new loader that finds no room for its first batches waits
// in the same way.
//
// Locks. All locks of the engine are taken in this order: a thread that holds one takes only locks
// below it.
//
//   1. DeviceStage: use_, then ends_
//   2. a loader's list of producers
//   3. a producer's lifecycle (start, stop, seek)
//   4. ReadService: attaching, then its list of clients
//   5. Assembler
//   6. SlotPool
//   7. MemoryManager
//   8. locks under which no other is taken: the reader threads' sleep, SettingsController,
//      executors' queues, traces
//
// Under its lock the manager calls other code only to free idle memory, which takes no lock. The
// thread sanitizer checks the order: it reports each pair of mutexes that were ever taken in both
// orders, whether or not the two threads met (`./dev tsan`, part of `./dev test --all`).
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "core/memory/memory_budget.h"
#include "core/result/result.h"
#include "engine/memory/memory_plan.h"

namespace stoker {

class MemoryLease;

// Thread-safe. In the steady state it takes no lock: beginning and ending a sample change two
// counters.
class MemoryManager {
 public:
  // `wake_readers`: makes the reader threads ask every loader for samples again, soon and on
  // another thread. It is not called before there is a lease.
  MemoryManager(uint64_t budget, int workers, std::function<void()> wake_readers);

  // Creates the lease of a new loader, with its first batches reserved. Errors: those of
  // PlanMemory. May wait until samples of other loaders have ended; leases are made one at a time.
  Result<std::unique_ptr<MemoryLease>> Lease(const MemoryNeeds& needs, double weight);

  const MemoryBudget& budget() const { return budget_; }
  uint64_t samples_waited() const { return samples_waited_.load(std::memory_order_relaxed); }

 private:
  friend class MemoryLease;

  struct Waiting {
    MemoryLease* lease;
    uint32_t sample;
  };

  bool AnyWaits() const { return waiting_.load(std::memory_order_seq_cst) != 0; }
  bool NothingInWork() const { return in_work_.load(std::memory_order_seq_cst) == 0; }
  void End();
  void EndRetry();
  void NotifyAll();

  // These require mutex_.
  std::vector<MemoryClaim> Claims() const;
  void DivideBudget();
  void DivideAmongLeases();
  void FreeIdleMemory();  // precondition: no work is in progress
  void ReserveAlone(std::unique_lock<std::mutex>& lock, Reservation& reservation, uint64_t bytes);

  MemoryBudget budget_;
  MemoryBudget batches_;
  MemoryBudget samples_;
  const int workers_;
  const std::function<void()> wake_readers_;

  // A thread that begins work counts it and then checks for waiters; a waiter registers and then
  // checks for work in progress. Both use seq_cst, so they cannot both proceed.
  std::atomic<uint32_t> in_work_{0};
  std::atomic<uint32_t> waiting_{0};  // samples in the list or being retried, and a new loader
  std::atomic<uint64_t> samples_waited_{0};

  std::mutex mutex_;  // guards the members below, and the leases' needs
  std::condition_variable changed_;
  std::vector<MemoryLease*> leases_;
  std::deque<Waiting> wait_list_;
  bool leasing_ = false;  // a new loader waits for its first batches
  uint64_t now_ns_ = 0;   // the latest time that any loader has passed
};

// Counts one piece of work in progress, from MemoryLease::Begin to its destruction: a sample, a
// worker's task, or a call that looks for samples to read. Move-only; the lease must outlive it.
// Destroying a token may be the last access to the lease, and so to the loader.
class WorkToken {
 public:
  WorkToken() = default;  // holds no count
  WorkToken(WorkToken&& other) noexcept
      : lease_(std::exchange(other.lease_, nullptr)), alone_(std::exchange(other.alone_, false)) {}
  WorkToken& operator=(WorkToken&& other) noexcept {
    WorkToken ended(std::move(other));
    std::swap(lease_, ended.lease_);
    std::swap(alone_, ended.alone_);
    return *this;
  }
  ~WorkToken();

  explicit operator bool() const { return lease_ != nullptr; }
  // Whether it belongs to a sample that waited; nothing else is in progress until such a token
  // ends.
  bool alone() const { return alone_; }
  // Keeps the count without a token: MemoryLease::Adopt makes a token of it again. For work that is
  // passed on as a plain pointer. Precondition: not alone.
  void Release() && { lease_ = nullptr; }

 private:
  friend class MemoryLease;
  WorkToken(MemoryLease* lease, bool alone) : lease_(lease), alone_(alone) {}

  MemoryLease* lease_ = nullptr;
  bool alone_ = false;
};

// One loader's share of the resources of a Runtime. Thread-safe; the manager must outlive it. It is
// destroyed before the memory that OnShortage's function frees: the destructor calls that function
// once more.
class MemoryLease {
 public:
  struct Need {
    uint64_t workers = 1;
    uint64_t batch_bytes = 0;
  };

  ~MemoryLease();  // precondition: none of its work is in progress or waits
  MemoryLease(const MemoryLease&) = delete;
  MemoryLease& operator=(const MemoryLease&) = delete;

  const MemoryPlan& plan() const { return plan_; }

  // ---- Memory it holds

  // The reservation for the first batches, to be resized with their number. Called once.
  Reservation TakeBatches() { return std::move(first_batches_); }
  // The budget for read buffers and workspaces.
  MemoryBudget& samples() const { return manager_.samples_; }
  // Whether half of it is in use: then buffers that have grown beyond their usual size are not
  // kept.
  bool scarce() const { return samples().used() >= samples().limit() / 2; }
  // `free_idle` frees the memory that the loader holds for samples. It is called while no work is
  // in progress, under the manager's lock: it must take no lock and call nothing of the manager.
  void OnShortage(std::function<void()> free_idle);

  // ---- Its share

  // Sets the loader's needs and divides the resources again. A loader that has not called it for
  // much longer than its usual interval is idle and gets no workers; it keeps its memory, where its
  // batches wait for its consumer. Time is in nanoseconds of the monotonic clock.
  void SetNeed(const Need& need, uint64_t now_ns);
  // The granted share: its needs as far as they can be met, plus its part of the surplus; never
  // less than one worker and the plan's minimum of batches. Lock-free.
  uint64_t workers() const { return granted_workers_.load(std::memory_order_relaxed); }
  uint64_t batch_bytes() const { return granted_bytes_.load(std::memory_order_relaxed); }
  bool shared() const {
    return shared_.load(std::memory_order_relaxed);
  }  // there are other loaders

  // ---- Work in progress

  // Returns an empty token while a sample waits: call TakeRetry then.
  [[nodiscard]] WorkToken TryBegin();
  // For work that continues other work in progress.
  [[nodiscard]] WorkToken Begin();
  [[nodiscard]] WorkToken Adopt() { return WorkToken(this, false); }  // takes over a released count
  // Waits until none of its work is in progress. Precondition: no new work begins meanwhile, except
  // to continue work in progress; one thread at a time.
  void Drain();
  // The same, but waits no longer than `most`; false means call it again.
  [[nodiscard]] bool TryDrain(std::chrono::milliseconds most);

  // ---- Samples that found no room

  // Adds the sample, whose memory has been freed, to the wait list, and ends `work`. Precondition:
  // not alone.
  void JoinWaitList(uint32_t sample, WorkToken work);
  struct Retry {
    uint32_t sample;
    WorkToken work;  // alone
  };
  // Returns the first sample of the list, if it is this loader's and no work is in progress, after
  // freeing idle memory.
  std::optional<Retry> TakeRetry();
  // Removes all its samples from the list and returns them.
  std::vector<uint32_t> LeaveWaitList();
  // The error for a sample that found no room although it was alone: adds the sufficient budget to
  // `error`, including `finish` bytes for the steps after decoding. If the system has no memory, no
  // budget is sufficient, and the error is returned unchanged.
  Error Refusal(const Error& error, uint64_t finish) const;

 private:
  friend class MemoryManager;
  friend class WorkToken;
  MemoryLease(MemoryManager& manager, const MemoryPlan& plan, double weight);
  void End(bool alone);
  bool Idle(uint64_t now_ns) const;

  // A flag in in_work_: a thread waits for the work to end.
  static constexpr uint32_t kAwaited = uint32_t{1} << 31;

  MemoryManager& manager_;
  const MemoryPlan plan_;
  const double weight_;
  Reservation first_batches_;
  std::atomic<uint32_t> in_work_{0};
  std::atomic<uint64_t> granted_workers_{0};
  std::atomic<uint64_t> granted_bytes_{0};
  std::atomic<bool> shared_{false};
  // Under the manager's lock:
  std::function<void()> free_idle_ = [] {};
  Need need_;
  uint64_t need_set_ns_ = 0;  // 0 means never
  uint64_t interval_ns_ = 0;  // recent time between two calls of SetNeed
};

inline WorkToken::~WorkToken() {
  if (lease_ != nullptr) lease_->End(alone_);
}

}  // namespace stoker
