#include "engine/memory/memory_accounts.h"

#include <algorithm>
#include <utility>

#include "core/try.h"

namespace stoker {

Result<std::unique_ptr<MemoryAccounts::Member>> MemoryAccounts::Join(const MemoryNeeds& needs) {
  std::lock_guard lock(mutex_);
  ASSIGN_OR_RETURN(MemoryPlan plan, PlanMemory(needs, all_.limit(), claims_, batches_.used()));
  claims_.push_back(plan.claim);
  Divide();
  // It may take its first batches, also where others still have more than is now theirs.
  batches_.SetLimit(std::max(batches_.limit(), batches_.used() + plan.claim.least_batches));
  return std::unique_ptr<Member>(new Member(*this, plan));
}

void MemoryAccounts::Leave(const MemoryClaim& claim) {
  std::lock_guard lock(mutex_);
  claims_.erase(std::ranges::find(claims_, claim));
  Divide();
}

void MemoryAccounts::Divide() {
  const MemoryShares shares = ShareMemory(all_.limit(), claims_);
  samples_.SetLimit(shares.samples);
  batches_.SetLimit(shares.batches);
}

uint64_t MemoryAccounts::BudgetForSample(uint64_t bytes) const {
  std::lock_guard lock(mutex_);
  return stoker::BudgetForSample(bytes, claims_);
}

}  // namespace stoker
