#include "engine/production/batches/map_threads.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/system/start_thread.h"
#include "core/time/stage_times.h"

namespace stoker {

MapThreads::MapThreads(const MapCaller& function, SlotPool& slots, const Trace& trace,
                       Assembler& assembler)
    : function_(function), slots_(slots), trace_(trace), assembler_(assembler) {}

MapThreads::~MapThreads() {
  {
    const std::lock_guard lock(mutex_);
    open_ = false;
    ending_ = true;
    given_.notify_all();
  }
  for (std::thread& thread : threads_) thread.join();
}

Status MapThreads::Start() {
  while (threads_.size() < static_cast<size_t>(function_.calls())) {
    Result<std::thread> thread =
        StartThread("a thread that calls " + function_.name(), [this] { Run(); });
    if (!thread.ok() && !threads_.empty()) return {};  // the others do the work
    if (!thread.ok()) return std::move(thread).error();
    threads_.push_back(*std::move(thread));
    started_.store(static_cast<uint32_t>(threads_.size()), std::memory_order_relaxed);
  }
  return {};
}

void MapThreads::Open() {
  const std::lock_guard lock(mutex_);
  next_ = 0;
  open_ = true;
}

void MapThreads::Close() {
  const std::lock_guard lock(mutex_);
  open_ = false;
  waiting_.clear();
}

bool MapThreads::Wait(std::chrono::milliseconds most) {
  std::unique_lock lock(mutex_);
  return ended_.wait_for(lock, most, [this] { return calling_ == 0; });
}

int MapThreads::calling() const {
  const std::lock_guard lock(mutex_);
  return calling_;
}

void MapThreads::Give(WholeBatch batch) {
  const std::lock_guard lock(mutex_);
  if (!open_) return;
  const bool is_next = batch.claim.batch == next_;
  waiting_.push_back(std::move(batch));
  if (is_next) given_.notify_one();
}

void MapThreads::Run() {
  BecomeBackgroundThread("stoker/map");
  std::unique_lock lock(mutex_);
  while (!ending_) {
    std::optional<WholeBatch> batch = Take();
    if (!batch) {
      given_.wait(lock);
      continue;
    }
    ++calling_;
    lock.unlock();
    Status status = batch->failed ? Status() : Call(*batch);
    assembler_.Complete(batch->claim, batch->last_row, batch->cost, std::move(status));
    lock.lock();
    if (--calling_ == 0) ended_.notify_all();
  }
}

// Requires mutex_. Returns the batch whose turn it is. If the batch after it has arrived, too,
// another thread is woken.
std::optional<MapThreads::WholeBatch> MapThreads::Take() {
  const auto number = [](const WholeBatch& batch) { return batch.claim.batch; };
  const auto found = std::ranges::find(waiting_, next_, number);
  if (found == waiting_.end()) return std::nullopt;
  WholeBatch batch = std::move(*found);
  waiting_.erase(found);
  ++next_;
  if (std::ranges::find(waiting_, next_, number) != waiting_.end()) given_.notify_one();
  return batch;
}

Status MapThreads::Call(WholeBatch& whole) {
  Slot* const slot = whole.claim.slot;
  const TraceSpan span(trace_, "stoker.map", slot->epoch, slot->index);
  const Batch batch = slots_.View(slot);
  const uint64_t before = NowNanoseconds();
  Status status = function_.MapBatch(batch);
  whole.cost.map_ns = NowNanoseconds() - before;
  whole.cost.map_calls = started_.load(std::memory_order_relaxed);
  calls_.fetch_add(1, std::memory_order_relaxed);
  called_ns_.fetch_add(whole.cost.map_ns, std::memory_order_relaxed);
  return status;
}

}  // namespace stoker
