// The working memory of a Runtime, and who has a claim on it: where the division of memory_plan.h
// is kept.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "core/memory_budget.h"
#include "core/result.h"
#include "engine/memory/memory_plan.h"

namespace stoker {

// Any thread.
class MemoryAccounts {
 public:
  explicit MemoryAccounts(uint64_t limit) : all_(limit), batches_(0, all_), samples_(limit, all_) {}

  MemoryBudget& all() { return all_; }          // the budget itself
  MemoryBudget& batches() { return batches_; }  // of it: slots in production
  MemoryBudget& samples() { return samples_; }  // of it: read buffers and workspaces

  // A loader's claim, withdrawn when it goes.
  class Member {
   public:
    ~Member() { home_.Leave(plan_.claim); }
    Member(const Member&) = delete;
    Member& operator=(const Member&) = delete;
    const MemoryPlan& plan() const { return plan_; }

   private:
    friend class MemoryAccounts;
    Member(MemoryAccounts& home, const MemoryPlan& plan) : home_(home), plan_(plan) {}
    MemoryAccounts& home_;
    const MemoryPlan plan_;
  };

  // PlanMemory's errors. Reserves nothing: the samples of other loaders may still have what was
  // theirs. One at a time (Runtime::planning), until the batches are reserved.
  Result<std::unique_ptr<Member>> Join(const MemoryNeeds& needs);

  // What one sample may take, and the budget with which it might take so much.
  uint64_t sample_share() const { return samples_.limit(); }
  uint64_t BudgetForSample(uint64_t bytes) const;

 private:
  void Leave(const MemoryClaim& claim);
  void Divide();  // under mutex_

  MemoryBudget all_;
  MemoryBudget batches_;
  MemoryBudget samples_;
  mutable std::mutex mutex_;
  std::vector<MemoryClaim> claims_;
};

}  // namespace stoker
