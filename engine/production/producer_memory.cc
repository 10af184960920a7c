// Producer, continued: reserves the memory of its batches, and handles a shortage of memory for
// samples.
#include <memory>
#include <utility>

#include "core/result/try.h"
#include "engine/production/producer.h"
#include "engine/production/producer_parts.h"

namespace stoker {

Result<Producer::Reserved> Producer::Reserve(const LoaderOptions& options,
                                             const ProducerOptions& own,
                                             const std::vector<ColumnSpec>& columns,
                                             const std::optional<Plan>& plan) {
  Runtime& runtime = *options.runtime;
  const RuntimeOptions& runtime_options = runtime.options();
  ASSIGN_OR_RETURN(
      std::unique_ptr<MemoryLease> lease,
      runtime.memory().Lease(
          {.slot_bytes = SlotPool::SlotBytes(columns, options.batch_size, own.one_slab, own.crops),
           .has_crops = own.crops.bytes != 0,
           .depth = options.depth,
           .threads = runtime_options.threads,
           .requests = static_cast<uint32_t>(
               RowsAhead(MaxReads(options, runtime_options), runtime_options.threads)),
           .first_depth = kFirstDepth,
           .max_depth = MaxDepth(options, own, runtime_options),
           .workspace_bytes = kWorkspaceBytes + (plan ? plan->extra_bytes() : 0) +
                              (own.cache != nullptr ? kPackerBytes : 0),
           .at_once = own.pinned_for != nullptr},
          options.weight));
  ASSIGN_OR_RETURN(
      std::shared_ptr<SlotPool> slots,
      SlotPool::Make(SlotOptionsOf(options, own, columns, lease->plan()), lease->TakeBatches()));
  return Reserved{std::move(lease), std::move(slots)};
}

// Returns whether the sample must join the wait list instead of ending with this status.
bool Producer::MustWait(uint32_t index, Status& status) {
  const SampleInFlight& sample = samples_[index];
  if (status.ok() || status.error().wanted_bytes == 0) return false;
  if (stopped_.load(std::memory_order_relaxed)) return false;
  if (!sample.work.alone()) return true;
  const std::optional<Plan>& plan = writer_.plan();
  status = memory_->Refusal(status.error(), plan ? plan->tile_bytes() : 0);
  return false;
}

// After this call the sample belongs to the wait list, or it has ended because work ends: nobody
// would retry it. PutBack says why one of two threads sees what the other did.
void Producer::Postpone(uint32_t index) {
  samples_[index].read.buffer.Free();
  samples_[index].path.times().begun_ns = 0;
  samples_.SetPlace(index, SamplesInFlight::Place::kPostponed);
  memory_->JoinWaitList(index, std::move(samples_[index].work));
  if (ending_) DropPostponed();
}

// Replaces Pull while samples wait: retries the first sample of the wait list, if it is this
// producer's.
size_t Producer::PullRetry(std::span<ReadRequest*> requests) {
  std::optional<MemoryLease::Retry> retry = memory_->TakeRetry();
  if (!retry) return 0;
  SampleInFlight& sample = samples_[retry->sample];
  sample.work = std::move(retry->work);
  // It is read from its file, and not packed, which takes memory, too.
  sample.cached.state = CachedSample::State::kNone;
  if (in_memory_) {
    Submit(retry->sample);
    return 0;
  }
  samples_.BeginRead(retry->sample);
  samples_.SetPlace(retry->sample, SamplesInFlight::Place::kReading);
  requests[0] = &sample.read;
  return 1;
}

// Any thread, and several at a time.
void Producer::DropPostponed() {
  for (uint32_t index : memory_->LeaveWaitList()) {
    samples_[index].work = memory_->Begin();
    End(index, {}, Error{Code::kCancelled, "stopped"}, 0);
  }
}

void Producer::FreeIdleMemory() {
  samples_.FreeBuffers();  // waiting samples have none
  writer_.FreeWorkspaces();
}

// Buffers that have grown are kept while memory is plentiful; otherwise a few large files would
// hold it.
void Producer::TrimBuffer(GrowingBuffer& buffer) const {
  if (buffer.capacity() >= 2 * kReadBufferBytes && memory_->scarce()) buffer.Free();
}

void Producer::TrimWorkspace(Workspace& workspace) const {
  const uint64_t usual = kWorkspaceBytes + writer_.plan()->extra_bytes();
  if (MemoryOf(workspace) > usual && memory_->scarce()) FreeMemoryOf(workspace);
}

void Producer::TrimPacker(JpegPacker& packer) const {
  if (packer.memory_bytes() > kPackerBytes && memory_->scarce()) packer.FreeMemory();
}

}  // namespace stoker
