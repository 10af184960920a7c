// The memory of a producer: what is reserved for its batches, what it has in work, and what it does
// when the memory for samples runs short.
#include <string>
#include <utility>

#include "core/try.h"
#include "engine/loader/producer.h"
#include "engine/loader/producer_parts.h"

namespace stoker {

Result<Producer::Reserved> Producer::Reserve(const LoaderOptions& options,
                                             const ProducerOptions& own,
                                             const std::vector<ColumnSpec>& columns,
                                             const std::optional<Plan>& plan) {
  Runtime& runtime = *options.runtime;
  const RuntimeOptions& limits = runtime.options();
  std::lock_guard planning(runtime.planning());
  Result<std::unique_ptr<MemoryAccounts::Member>> member = runtime.memory().Join(
      {.slot_bytes = SlotPool::SlotBytes(columns, options.batch_size, own.one_slab),
       .depth = options.depth,
       .threads = limits.threads,
       .reads_in_flight = limits.reads_in_flight * static_cast<uint32_t>(limits.reader_threads),
       .most_depth = MostDepth(options, own, limits),
       .workspace_bytes = kWorkspaceBytes + (plan ? plan->tile_bytes() : 0),
       .at_once = own.pinned_for != nullptr});
  if (!member.ok()) return std::move(member).error();

  const SlotPool::Options of_slots = SlotOptionsOf(options, own, columns, (*member)->plan());
  const auto make_slots = [&] { return SlotPool::Make(of_slots, runtime.memory().batches()); };
  Result<std::shared_ptr<SlotPool>> slots = make_slots();
  if (!slots.ok() && slots.error().wanted_bytes != 0) {  // other loaders' samples have it
    runtime.postponed().Alone([&] { slots = make_slots(); });
  }
  if (!slots.ok()) return std::move(slots).error();
  return Reserved{*std::move(member), *std::move(slots)};
}

void Producer::BeginWork() {
  runtime_.postponed().Another();
  in_work_.fetch_add(1, std::memory_order_relaxed);
}

// The last of them is the last touch of this producer.
void Producer::EndWork() {
  runtime_.postponed().End();
  in_work_.fetch_sub(1, std::memory_order_release);
}

// Whether the sample has to wait for its turn, instead of having ended like that.
bool Producer::MustWait(uint32_t index, Status& status) {
  const SampleInFlight& sample = samples_[index];
  if (status.ok() || status.error().wanted_bytes == 0) return false;
  if (stopped_.load(std::memory_order_relaxed)) return false;
  if (sample.alone) status = Refusal(status.error());
  return !sample.alone;
}

// The sample is another's from here on.
void Producer::Postpone(uint32_t index) {
  samples_[index].read.buffer.Free();
  samples_[index].path.times().begun_ns = 0;
  runtime_.postponed().Add(*this, index);
  EndWork();
}

// What would have been too little with all of the samples' share is never enough.
Error Producer::Refusal(const Error& error) const {
  MemoryAccounts& memory = runtime_.memory();
  const std::optional<Plan>& plan = writer_.plan();
  const uint64_t finish = plan ? plan->tile_bytes() : 0;  // what comes behind decoding
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
size_t Producer::PullTurn(std::span<ReadRequest*> requests) {
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
void Producer::DropPostponed() {
  for (uint32_t index : runtime_.postponed().Drop(*this)) {
    BeginWork();
    End(index, {}, Error{Code::kCancelled, "stopped"}, 0);
  }
}

void Producer::GiveBack() {
  samples_.FreeBuffers();  // those that wait have none
  writer_.FreeWorkspaces();
}

// What has grown stays so while memory is plenty; else a few large files would hold it.
void Producer::TrimBuffer(GrowingBuffer& buffer) const {
  const MemoryBudget& memory = runtime_.memory().samples();
  if (buffer.capacity() < 2 * kReadBufferBytes || memory.used() < memory.limit() / 2) return;
  buffer.Free();
}

void Producer::TrimWorkspace(Workspace& workspace) const {
  const MemoryBudget& memory = runtime_.memory().samples();
  if (MemoryOf(workspace) <= kWorkspaceBytes + writer_.plan()->tile_bytes()) return;
  if (memory.used() >= memory.limit() / 2) FreeMemoryOf(workspace);
}

}  // namespace stoker
