// MemoryManager: owns the working memory of a Runtime and says which loader may use how much of it.
//
//   budget ─┬─ batches   slots in production           what moves the line: memory_plan.h
//           └─ samples   read buffers, workspaces
//
// A loader has one MemoryLease. What several loaders want, memory for batches and workers, is
// divided among the leases by need, weight and minimum (fair_share.h).
//
// Waiting. A sample that finds no room goes to the end of the wait list, which all loaders share.
// While the list has an entry, no loader begins another sample, so what is in work ends: soon,
// since none of it waits for a consumer. Then every loader frees the memory that lies idle, and the
// first sample of the list is tried again from its read on, alone. What has no room then, with all
// of the samples' share to itself, never will: whether a sample is refused depends on the budget
// and on its file, not on what else was in work. A new loader that finds no room for its first
// batches waits in the same way.
//
// Locks. This is the order in which all locks of the engine are taken: whoever holds one takes only
// those below it.
//
//   1. staging for a device: the use of it, then its ends
//   2. a loader's list of producers
//   3. a producer's lifecycle (start, stop, seek)
//   4. ReadService: attaching, then its list of clients
//   5. Assembler
//   6. SlotPool
//   7. MemoryManager
//   8. those that take no other: the reader threads' sleep, a producer's statistics, executors'
//      queues, traces
//
// The manager calls out under its lock only to free idle memory, which takes no lock at all. The
// order is checked by the thread sanitizer: it reports each pair of mutexes that were ever taken in
// both orders, whether or not the two threads met (`./dev tsan`, part of `./dev test --all`).
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "core/memory_budget.h"
#include "core/result.h"
#include "engine/memory/memory_plan.h"

namespace stoker {

class MemoryLease;

// Any thread. In the steady state it takes no lock: for a sample two numbers are counted.
class MemoryManager {
 public:
  // `wake_readers`: has every loader asked for samples again, soon and on another thread. It is not
  // called before there is a lease.
  MemoryManager(uint64_t budget, int workers, std::function<void()> wake_readers);

  // A new loader's lease, with its first batches reserved. PlanMemory's errors. May wait until
  // samples of other loaders have ended; leases are made one at a time.
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
  void EndTurn();
  void NotifyAll();

  // All of these under mutex_.
  std::vector<MemoryClaim> Claims() const;
  void DivideBudget();
  void DivideAmongLeases();
  void FreeIdleMemory();  // precondition: nothing is in work
  void ReserveAlone(std::unique_lock<std::mutex>& lock, Reservation& reservation, uint64_t bytes);

  MemoryBudget budget_;
  MemoryBudget batches_;
  MemoryBudget samples_;
  const int workers_;
  const std::function<void()> wake_readers_;

  // Whoever begins counts itself, then looks whether anyone waits; whoever waits says so, then
  // looks whether anything is in work: in one total order (seq_cst), so that not both go on.
  std::atomic<uint32_t> in_work_{0};
  std::atomic<uint32_t> waiting_{0};  // samples in the list, the one that is tried, a new loader
  std::atomic<uint64_t> samples_waited_{0};

  std::mutex mutex_;  // guards what follows, and the leases' needs
  std::condition_variable changed_;
  std::vector<MemoryLease*> leases_;
  std::deque<Waiting> wait_list_;
  bool leasing_ = false;  // a new loader waits for its first batches
  uint64_t now_ns_ = 0;   // the latest that any loader has named
};

// Counts one piece of work in progress, from MemoryLease::Begin to its own end: a sample on its
// way, a task of a worker's, a look for samples to read. Move-only; the lease outlives it. Its end
// may be the last touch of the lease, and so of the loader.
class WorkToken {
 public:
  WorkToken() = default;  // counts nothing
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
  // Whether it is that of a sample that waited: then nothing else is in work until it ends.
  bool alone() const { return alone_; }
  // Ends nothing: MemoryLease::Adopt makes a token of the same count. For what is handed on as a
  // plain pointer. Precondition: not alone.
  void Release() && { lease_ = nullptr; }

 private:
  friend class MemoryLease;
  WorkToken(MemoryLease* lease, bool alone) : lease_(lease), alone_(alone) {}

  MemoryLease* lease_ = nullptr;
  bool alone_ = false;
};

// What one loader may use of what all loaders of a Runtime share. Any thread; the manager outlives
// it. It is destroyed before the memory that OnShortage's function frees: it calls that once more.
class MemoryLease {
 public:
  struct Need {
    uint64_t workers = 1;
    uint64_t batch_bytes = 0;
  };

  ~MemoryLease();  // precondition: nothing of it is in work or waits
  MemoryLease(const MemoryLease&) = delete;
  MemoryLease& operator=(const MemoryLease&) = delete;

  const MemoryPlan& plan() const { return plan_; }

  // ---- What it holds

  // Memory for the first batches, to be grown and shrunk with their number. Once.
  Reservation TakeBatches() { return std::move(batches_); }
  // Where read buffers and workspaces are reserved.
  MemoryBudget& samples() const { return manager_.samples_; }
  // Whether half of that is in use: then what has grown beyond its usual size is not kept.
  bool scarce() const { return samples().used() >= samples().limit() / 2; }
  // `free_idle` gives back what the loader holds for samples. It is called while nothing is in
  // work, under the manager's lock: it takes no lock and calls nothing of the manager's.
  void OnShortage(std::function<void()> free_idle);

  // ---- What it may use

  // What it needs from now on; changes what all may use. A loader that has not said so for much
  // longer than it used to is idle and needs no workers; its memory stays, for batches that wait
  // for its consumer lie there. Nanoseconds of the monotonic clock.
  void SetNeed(const Need& need, uint64_t now_ns);
  // What it needs or is left to it, and its part of what nobody needs; never less than one worker
  // and the plan's least batches. No lock.
  uint64_t workers() const { return granted_workers_.load(std::memory_order_relaxed); }
  uint64_t batch_bytes() const { return granted_bytes_.load(std::memory_order_relaxed); }
  bool shared() const { return shared_.load(std::memory_order_relaxed); }  // with other loaders

  // ---- Its work in progress

  // An empty token while a sample waits: then TakeTurn.
  [[nodiscard]] WorkToken TryBegin();
  // Beside other work that has begun.
  [[nodiscard]] WorkToken Begin();
  [[nodiscard]] WorkToken Adopt() { return WorkToken(this, false); }  // what was released
  // Waits until nothing of it is in work. Precondition: nothing begins meanwhile, but beside what
  // has begun; one thread at a time.
  void Drain();

  // ---- Its samples that found no room

  // The sample, whose memory has been given back, waits from now on, and `work` ends.
  // Precondition: not alone.
  void JoinWaitList(uint32_t sample, WorkToken work);
  struct Turn {
    uint32_t sample;
    WorkToken work;  // alone
  };
  // The first of the list, if it is this loader's and nothing is in work: idle memory has been
  // freed, and what has room now has room.
  std::optional<Turn> TakeTurn();
  // None of its samples waits any more; those that did. Precondition: nothing of it is in work.
  std::vector<uint32_t> LeaveWaitList();
  // What becomes of `error`, by which a sample found no room although alone: the budget that would
  // do, with `finish` more bytes for what follows decoding.
  Error Refusal(const Error& error, uint64_t finish) const;

 private:
  friend class MemoryManager;
  friend class WorkToken;
  MemoryLease(MemoryManager& manager, const MemoryPlan& plan, double weight);
  void End(bool alone);
  bool Idle(uint64_t now_ns) const;

  // Of in_work_: a thread waits for the last one to end.
  static constexpr uint32_t kAwaited = uint32_t{1} << 31;

  MemoryManager& manager_;
  const MemoryPlan plan_;
  const double weight_;
  Reservation batches_;
  std::atomic<uint32_t> in_work_{0};
  std::atomic<uint64_t> granted_workers_{0};
  std::atomic<uint64_t> granted_bytes_{0};
  std::atomic<bool> shared_{false};
  // Under the manager's lock.
  std::function<void()> free_idle_ = [] {};
  Need need_;
  uint64_t need_set_ns_ = 0;  // 0: never
  uint64_t interval_ns_ = 0;  // between two calls of SetNeed, lately
};

inline WorkToken::~WorkToken() {
  if (lease_ != nullptr) lease_->End(alone_);
}

}  // namespace stoker
