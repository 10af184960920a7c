#include "engine/memory/memory_manager.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/result/try.h"
#include "engine/memory/fair_share.h"

namespace stoker {

MemoryManager::MemoryManager(uint64_t budget, int workers, std::function<void()> wake_readers)
    : budget_(budget),
      batches_(0, budget_),
      samples_(budget, budget_),
      workers_(std::max(workers, 0)),
      wake_readers_(std::move(wake_readers)) {}

// ---- Leases

Result<std::unique_ptr<MemoryLease>> MemoryManager::Lease(const MemoryNeeds& needs, double weight) {
  std::unique_ptr<MemoryLease> lease;
  std::unique_lock lock(mutex_);
  // Only one lease at a time may be waiting for its first batches.
  changed_.wait(lock, [this] { return !leasing_; });
  ASSIGN_OR_RETURN(const MemoryPlan plan,
                   PlanMemory(needs, budget_.limit(), Claims(), batches_.used()));
  lease.reset(new MemoryLease(*this, plan, weight));
  leases_.push_back(lease.get());
  DivideBudget();
  // It may take its first batches even if other loaders still hold more than their new share.
  batches_.SetLimit(std::max(batches_.limit(), batches_.used() + plan.claim.min_batches));
  DivideAmongLeases();
  const auto first = static_cast<uint64_t>(needs.at_once ? plan.max_depth : plan.depth);
  const uint64_t bytes = first * needs.slot_bytes;
  // Samples of other loaders may still use the memory. (If other loaders' batches have grown
  // meanwhile there is no room even then, and SlotPool::Make reports it.)
  if (!lease->first_batches_.Resize(bytes)) ReserveAlone(lock, lease->first_batches_, bytes);
  return lease;
}

void MemoryManager::ReserveAlone(std::unique_lock<std::mutex>& lock, Reservation& reservation,
                                 uint64_t bytes) {
  leasing_ = true;
  waiting_.fetch_add(1, std::memory_order_seq_cst);
  changed_.wait(lock, [this] { return NothingInWork(); });
  FreeIdleMemory();
  (void)reservation.Resize(bytes);
  waiting_.fetch_sub(1, std::memory_order_seq_cst);
  leasing_ = false;
  changed_.notify_all();
  lock.unlock();
  wake_readers_();
}

MemoryLease::MemoryLease(MemoryManager& manager, const MemoryPlan& plan, double weight)
    : manager_(manager), plan_(plan), weight_(weight), first_batches_(manager.batches_) {
  need_.batch_bytes = plan.claim.min_batches;
}

MemoryLease::~MemoryLease() {
  std::lock_guard lock(manager_.mutex_);
  free_idle_();  // after this, other loaders cannot ask for the memory
  std::erase(manager_.leases_, this);
  manager_.DivideBudget();
  manager_.DivideAmongLeases();
}

void MemoryLease::OnShortage(std::function<void()> free_idle) {
  std::lock_guard lock(manager_.mutex_);
  free_idle_ = std::move(free_idle);
}

void MemoryManager::FreeIdleMemory() {
  for (MemoryLease* lease : leases_) lease->free_idle_();
}

// ---- Division

std::vector<MemoryClaim> MemoryManager::Claims() const {
  std::vector<MemoryClaim> claims;
  claims.reserve(leases_.size());
  for (const MemoryLease* lease : leases_) claims.push_back(lease->plan_.claim);
  return claims;
}

void MemoryManager::DivideBudget() {
  const MemoryShares shares = ShareMemory(budget_.limit(), Claims());
  samples_.SetLimit(shares.samples);
  batches_.SetLimit(shares.batches);
}

void MemoryManager::DivideAmongLeases() {
  std::vector<FairClaim> workers;
  std::vector<FairClaim> bytes;
  for (const MemoryLease* lease : leases_) {
    const uint64_t need = lease->Idle(now_ns_) ? 0 : lease->need_.workers;
    workers.push_back({lease->weight_, 1, need});
    bytes.push_back({lease->weight_, lease->plan_.claim.min_batches, lease->need_.batch_bytes});
  }
  const auto of_workers = FairSharesWithRoom(static_cast<uint64_t>(workers_), workers);
  const auto of_bytes = FairSharesWithRoom(batches_.limit(), bytes);
  for (size_t i = 0; i < leases_.size(); ++i) {
    leases_[i]->granted_workers_.store(of_workers[i], std::memory_order_relaxed);
    leases_[i]->granted_bytes_.store(of_bytes[i], std::memory_order_relaxed);
    leases_[i]->shared_.store(leases_.size() > 1, std::memory_order_relaxed);
  }
}

void MemoryLease::SetNeed(const Need& need, uint64_t now_ns) {
  std::lock_guard lock(manager_.mutex_);
  need_ = need;
  const uint64_t since = need_set_ns_ == 0 || now_ns < need_set_ns_ ? 0 : now_ns - need_set_ns_;
  interval_ns_ = std::max(since, interval_ns_ / 2);
  need_set_ns_ = now_ns;
  manager_.now_ns_ = std::max(manager_.now_ns_, now_ns);
  manager_.DivideAmongLeases();
}

bool MemoryLease::Idle(uint64_t now_ns) const {
  constexpr uint64_t kPatience = 2'000'000'000;
  return need_set_ns_ != 0 && now_ns > need_set_ns_ + kPatience + 8 * interval_ns_;
}

// ---- Work in progress

WorkToken MemoryLease::TryBegin() {
  if (manager_.AnyWaits()) return {};
  manager_.in_work_.fetch_add(1, std::memory_order_seq_cst);
  if (manager_.AnyWaits()) {
    manager_.End();  // a waiting thread may have counted this work and wait for its end
    return {};
  }
  in_work_.fetch_add(1, std::memory_order_relaxed);
  return {this, false};
}

WorkToken MemoryLease::Begin() {
  manager_.in_work_.fetch_add(1, std::memory_order_relaxed);
  in_work_.fetch_add(1, std::memory_order_relaxed);
  return {this, false};
}

void MemoryLease::End(bool alone) {
  MemoryManager& manager = manager_;
  if (alone) manager.EndRetry();
  manager.End();
  // This is the last access to the lease. A thread that waits for the lease checks again under the
  // manager's lock.
  if (in_work_.fetch_sub(1, std::memory_order_acq_rel) == (kAwaited | 1)) manager.NotifyAll();
}

void MemoryManager::End() {
  if (in_work_.fetch_sub(1, std::memory_order_seq_cst) != 1 || !AnyWaits()) return;
  NotifyAll();  // wakes a new loader
  wake_readers_();
}

void MemoryManager::NotifyAll() {
  std::lock_guard lock(mutex_);
  changed_.notify_all();
}

void MemoryLease::Drain() {
  while (!TryDrain(std::chrono::seconds(1))) {
  }
}

bool MemoryLease::TryDrain(std::chrono::milliseconds most) {
  bool drained = true;
  if (in_work_.fetch_or(kAwaited, std::memory_order_acq_rel) != 0) {
    std::unique_lock lock(manager_.mutex_);
    drained = manager_.changed_.wait_for(
        lock, most, [this] { return in_work_.load(std::memory_order_acquire) == kAwaited; });
  }
  in_work_.fetch_and(~kAwaited, std::memory_order_relaxed);
  return drained;
}

// ---- The wait list

void MemoryLease::JoinWaitList(uint32_t sample, WorkToken work) {
  {
    std::lock_guard lock(manager_.mutex_);
    manager_.wait_list_.push_back({this, sample});
    manager_.waiting_.fetch_add(1, std::memory_order_seq_cst);
  }
  manager_.samples_waited_.fetch_add(1, std::memory_order_relaxed);
  work = WorkToken();  // the first of the list may be waiting for its end
}

std::optional<MemoryLease::Retry> MemoryLease::TakeRetry() {
  std::lock_guard lock(manager_.mutex_);
  std::deque<MemoryManager::Waiting>& list = manager_.wait_list_;
  if (list.empty() || list.front().lease != this || !manager_.NothingInWork()) return std::nullopt;
  manager_.FreeIdleMemory();
  WorkToken work = Begin();
  work.alone_ = true;
  const uint32_t sample = list.front().sample;
  list.pop_front();  // it counts as waiting until EndRetry, so that no other work begins meanwhile
  return Retry{sample, std::move(work)};
}

// The next sample of the list has to wait for the End that follows; if the list is empty, readers
// can continue now.
void MemoryManager::EndRetry() {
  if (waiting_.fetch_sub(1, std::memory_order_seq_cst) == 1) wake_readers_();
}

std::vector<uint32_t> MemoryLease::LeaveWaitList() {
  std::vector<uint32_t> stopped;
  {
    std::lock_guard lock(manager_.mutex_);
    std::erase_if(manager_.wait_list_, [&](const MemoryManager::Waiting& waiting) {
      if (waiting.lease == this) stopped.push_back(waiting.sample);
      return waiting.lease == this;
    });
    manager_.waiting_.fetch_sub(static_cast<uint32_t>(stopped.size()), std::memory_order_seq_cst);
  }
  if (!stopped.empty()) manager_.wake_readers_();
  return stopped;
}

// A sample that does not fit into the whole share of the samples never will.
Error MemoryLease::Refusal(const Error& error, uint64_t finish) const {
  if (error.detail == Error::Detail::kNoMemory) return error;
  const uint64_t needed = samples().used() + error.wanted_bytes + finish;
  std::unique_lock lock(manager_.mutex_);
  const uint64_t budget = BudgetForSample(needed, manager_.Claims());
  lock.unlock();
  Error refusal = error;
  refusal.wanted_bytes = 0;  // it is final
  refusal.cause = "this sample needs " + std::to_string(needed) +
                  " bytes of working memory, and of the budget of " +
                  std::to_string(manager_.budget_.limit()) + " bytes at most " +
                  std::to_string(samples().limit()) + " are left after the batches (" +
                  error.cause + ")";
  refusal.advice = "Make the file smaller";
  refusal.changes = {{OptionChange::How::kSetToAtLeast, "memory_budget", budget}};
  return refusal;
}

}  // namespace stoker
