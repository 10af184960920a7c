// What a loader does when the memory for samples runs short.
#include <string>
#include <utility>

#include "engine/loader/producer_impl.h"

namespace stoker {

// Whether the sample has to wait for its turn, instead of having ended like that.
bool Producer::Impl::MustWait(const SampleInFlight& sample, Status& status) const {
  if (status.ok() || status.error().wanted_bytes == 0) return false;
  if (stopped_.load(std::memory_order_relaxed)) return false;
  if (sample.alone) status = Refusal(status.error());
  return !sample.alone;
}

// The sample is another's from here on.
void Producer::Impl::Postpone(uint32_t index) {
  samples_[index].read.buffer.Free();
  samples_[index].path.times().begun_ns = 0;
  runtime_.postponed().Add(*this, index);
  EndWork();
}

// What would have been too little with all of the samples' share is never enough.
Error Producer::Impl::Refusal(const Error& error) const {
  MemoryAccounts& memory = runtime_.memory();
  const uint64_t finish = plan_ ? plan_->tile_bytes() : 0;  // what comes behind decoding
  const uint64_t needed = memory.samples().used() + error.wanted_bytes + finish;
  const std::string budget = std::to_string(memory.BudgetForSample(needed));
  Error refusal = error;
  refusal.cause = "this sample needs " + std::to_string(needed) +
                  " bytes of working memory, and of the budget of " +
                  std::to_string(memory.all().limit()) + " bytes no more than " +
                  std::to_string(memory.sample_share()) + " are there beside the batches (" +
                  error.cause + ")";
  refusal.advice = "Set memory_budget to " + budget + " or more, or make the file smaller";
  return refusal;
}

// In the place of Pull, while samples wait: the one whose turn it is, if it is ours.
size_t Producer::Impl::PullTurn(std::span<ReadRequest*> requests) {
  const std::optional<uint32_t> index = runtime_.postponed().TakeTurn(*this);
  if (!index) return 0;
  SampleInFlight& sample = samples_[*index];
  sample.alone = true;
  in_work_.fetch_add(1, std::memory_order_relaxed);  // there, it has begun
  if (in_memory_) {
    Submit(*index);
    return 0;
  }
  samples_.BeginRead(*index);
  requests[0] = &sample.read;
  return 1;
}

// When nothing is in work any more.
void Producer::Impl::DropPostponed() {
  for (uint32_t index : runtime_.postponed().Drop(*this)) {
    BeginWork();
    EndSample(index, {}, Error{Code::kCancelled, "stopped"}, 0);
  }
}

void Producer::Impl::GiveBack() {
  samples_.FreeBuffers();  // those that wait have none
  for (WorkspacePointer& workspace : workspaces_) FreeMemoryOf(*workspace);
}

// What has grown stays so while memory is plenty; else a few large files would hold it.
void Producer::Impl::TrimBuffer(GrowingBuffer& buffer) const {
  const MemoryBudget& memory = runtime_.memory().samples();
  if (buffer.capacity() < 2 * kReadBufferBytes || memory.used() < memory.limit() / 2) return;
  buffer.Free();
}

void Producer::Impl::TrimWorkspace(Workspace& workspace) const {
  const MemoryBudget& memory = runtime_.memory().samples();
  if (MemoryOf(workspace) <= kWorkspaceBytes + plan_->tile_bytes()) return;
  if (memory.used() >= memory.limit() / 2) FreeMemoryOf(workspace);
}

}  // namespace stoker
