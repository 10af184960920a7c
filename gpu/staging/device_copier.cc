#include "gpu/staging/device_copier.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/batch/batch_parts.h"
#include "core/result/try.h"
#include "core/system/start_thread.h"
#include "core/time/stage_times.h"
#include "core/time/trace.h"
#include "gpu/staging/device_ring.h"
#include "gpu/staging/issue_batch.h"

namespace stoker {

namespace {

using Counter = std::atomic<uint64_t>;

// Adds the time of a wait to a counter, and reports it as a span.
class WaitTimer {
 public:
  WaitTimer(const Trace& trace, const char* name, Counter& ns) : span_(trace, name), ns_(ns) {}
  ~WaitTimer() { ns_.fetch_add(NowNanoseconds() - start_, std::memory_order_relaxed); }
  WaitTimer(const WaitTimer&) = delete;
  WaitTimer& operator=(const WaitTimer&) = delete;

 private:
  const TraceSpan span_;
  Counter& ns_;
  const uint64_t start_ = NowNanoseconds();
};

Error Cancelled(const char* why) { return {Code::kCancelled, why}; }

Error AllAreHeld(const DeviceRing& ring) {
  return {.code = Code::kResourceExhausted,
          .cause = "the caller holds " + std::to_string(ring.size()) + " batches on " +
                   ring.device()->name().ToString() + ", all that there is memory for",
          .advice =
              "Release batches before taking more (copy what is to be kept: labels lie with their "
              "images, and objects in reference cycles hold them, too), or raise buffers"};
}

// Waits for what has been issued, also without an event after it. Only if that fails it waits for
// all of the device, which would invalidate captures; if that fails too, the device is lost and
// reads nothing any more.
void AwaitStreams(DeviceRing& ring) {
  Device& device = *ring.device();
  const RingEntry& entry = ring.entry(0);  // its events may be late
  const bool done = device.Record(entry.copied, ring.copy_stream()).ok() &&
                    device.Synchronize(entry.copied).ok() &&
                    device.Record(entry.arrived, ring.deferred_stream()).ok() &&
                    device.Synchronize(entry.arrived).ok();
  if (!done) (void)device.SynchronizeAll();
}

}  // namespace

class DeviceCopier::Impl {
 public:
  using Rings = std::vector<std::shared_ptr<DeviceRing>>;
  Impl(Rings rings, HostBatches& source, const DeviceCopierOptions& options)
      : rings_(std::move(rings)),
        source_(source),
        options_(options),
        trace_(options.trace != nullptr ? *options.trace : silence_) {}

  ~Impl() {
    Stop();
    if (thread_.joinable()) thread_.join();
  }

  Result<SplitBatch> Next(const Interrupt& interrupt);
  void Stop();
  DeviceCopyStats Stats() const;
  bool here() const { return rings_[0]->process().here(); }

 private:
  // Called on the consumer's thread.
  Status Start();
  bool Await(std::unique_lock<std::mutex>& lock, const Interrupt& interrupt);
  void Reclaim(std::unique_lock<std::mutex>& lock);
  bool Ended() const { return !ready_.empty() || device_error_ || stopped_.load(); }
  const DeviceRing* HeldRing() const;

  // The body of the copier's thread.
  void Run();
  using Entries = std::vector<RingEntry*>;  // one of each ring, in order
  bool Acquire(Entries& entries);
  Result<Batch> TakeFromSource();
  Status Check(const Batch& host) const;
  Status Stage(const Entries& entries, const Batch& host);
  Status StageRows(RingEntry& entry, int64_t first, int64_t end);
  Status AwaitCopy(RingEntry& entry);
  Result<bool> ReleaseCopied(RingEntry& entry);
  Status ReleaseAllCopied();
  void HandOver(Result<SplitBatch> next);
  void HandOverAndPause(Result<SplitBatch> next);
  void WakeRings();
  void End(Status status);

  const Rings rings_;
  HostBatches& source_;
  const DeviceCopierOptions options_;
  const Trace silence_;
  const Trace& trace_;

  bool batch_since_end_ = true;  // used by the copier's thread only

  std::mutex mutex_;
  std::condition_variable ready_changed_;
  std::condition_variable asked_changed_;
  std::deque<Result<SplitBatch>> ready_;  // in order
  bool asked_ = false;                    // the consumer waits for a batch
  std::optional<Error> device_error_;     // the end, as the last item
  std::atomic<bool> stopped_ = false;     // set under mutex_
  std::thread thread_;                    // under mutex_, until it is joined

  Counter batches_ = 0, copied_bytes_ = 0, copy_ns_ = 0, timed_bytes_ = 0;
  Counter ring_wait_ns_ = 0, host_wait_ns_ = 0, copy_wait_ns_ = 0;
};

Result<SplitBatch> DeviceCopier::Impl::Next(const Interrupt& interrupt) {
  TRY(rings_[0]->process().Check(rings_[0]->device()->name().ToString()));
  std::unique_lock lock(mutex_);
  if (Status s = Start(); !s.ok()) return s.error();
  Reclaim(lock);
  if (!Ended()) {
    asked_ = true;
    asked_changed_.notify_one();
  }
  // Another thread, or a garbage collector, may still release a batch.
  const uint64_t patience =
      static_cast<uint64_t>(std::chrono::nanoseconds(options_.patience).count());
  for (uint64_t all_held_since = 0; !Ended();) {
    const uint64_t now = NowNanoseconds();
    const DeviceRing* const held = HeldRing();
    if (held == nullptr) {
      all_held_since = 0;
    } else if (all_held_since == 0 && patience > 0) {
      all_held_since = now;
    } else if (now - all_held_since >= patience) {
      return AllAreHeld(*held);
    }
    if (Await(lock, interrupt)) return Cancelled("the wait was interrupted");
    Reclaim(lock);
  }
  if (device_error_) return *device_error_;
  if (stopped_.load()) return Cancelled("the copier was stopped");
  Result<SplitBatch> next = std::move(ready_.front());
  ready_.pop_front();
  for (size_t i = 0; next.ok() && i < next->parts.size(); ++i) {
    rings_[i]->HandOut(*next->parts[i].Owner());
  }
  return next;
}

// An error here comes from the device and ends the copier.
void DeviceCopier::Impl::Reclaim(std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  Status status;
  for (size_t i = 0; status.ok() && i < rings_.size(); ++i) status = rings_[i]->Reclaim();
  lock.lock();
  if (status.ok() || device_error_) return;
  device_error_ = std::move(status).error();
  stopped_ = true;
  asked_changed_.notify_all();
  lock.unlock();
  WakeRings();
  lock.lock();
}

// Waits for a while; returns whether it was interrupted.
bool DeviceCopier::Impl::Await(std::unique_lock<std::mutex>& lock, const Interrupt& interrupt) {
  if (ready_changed_.wait_for(lock, kInterruptInterval, [&] { return Ended(); })) return false;
  if (!interrupt) return false;
  lock.unlock();  // `interrupt` may be slow, or call Stop
  const bool interrupted = interrupt();
  lock.lock();
  return interrupted;  // and takes nothing, even if a batch has become ready meanwhile
}

// Requires mutex_.
Status DeviceCopier::Impl::Start() {
  if (thread_.joinable() || stopped_.load()) return {};
  ASSIGN_OR_RETURN(thread_, StartThread("the copier's thread", [this] { Run(); }));
  return {};
}

// The ring that keeps the copier from making another batch, because the consumer holds all of it.
const DeviceRing* DeviceCopier::Impl::HeldRing() const {
  const auto held =
      std::ranges::find_if(rings_, [](const auto& ring) { return ring->AllHandedOut(); });
  return held == rings_.end() ? nullptr : held->get();
}

void DeviceCopier::Impl::Stop() {
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
    ready_changed_.notify_all();
    asked_changed_.notify_all();
  }
  WakeRings();
}

void DeviceCopier::Impl::WakeRings() {
  for (const auto& ring : rings_) ring->Wake();
}

void DeviceCopier::Impl::Run() {
  NameThread("stoker/stager");
  Status status;
  Entries entries;
  while (status.ok() && Acquire(entries)) {
    status = ReleaseAllCopied();  // the source may be waiting for their memory
    if (!status.ok()) break;
    Result<Batch> host = TakeFromSource();
    if (stopped_.load()) break;
    if (!host.ok()) {
      HandOverAndPause(std::move(host).error());
    } else if (*host) {
      status = Stage(entries, *host);
      host->Release();
      if (!status.ok()) break;
      SplitBatch batch;
      for (RingEntry* entry : entries) batch.parts.emplace_back(entry->ring->Lend(*entry));
      entries.clear();
      HandOver(std::move(batch));
      batch_since_end_ = true;
    } else if (options_.across_epochs && std::exchange(batch_since_end_, false)) {
      HandOver(SplitBatch());
    } else {
      HandOverAndPause(SplitBatch());
    }
  }
  for (RingEntry* entry : entries) entry->ring->Abandon(*entry);
  End(std::move(status));
}

// Adds the entries that are missing; returns false if stopped.
bool DeviceCopier::Impl::Acquire(Entries& entries) {
  if (entries.size() == rings_.size()) return true;
  const WaitTimer timer(trace_, "stoker.stage.ring", ring_wait_ns_);
  while (entries.size() < rings_.size()) {
    RingEntry* const entry = rings_[entries.size()]->Acquire(stopped_);
    if (entry == nullptr) return false;
    entries.push_back(entry);
  }
  return true;
}

Result<Batch> DeviceCopier::Impl::TakeFromSource() {
  const WaitTimer timer(trace_, "stoker.stage.host", host_wait_ns_);
  Result<Batch> host = source_.Next([this] { return stopped_.load(); });
  if (!host.ok() || !*host) return host;
  if (Status s = Check(*host); !s.ok()) return s.error();
  return host;
}

// Checks that the host batch fits the rings.
Status DeviceCopier::Impl::Check(const Batch& host) const {
  const CopyPlan& plan = rings_[0]->plan();
  const int64_t batch_size = plan.batch_size * static_cast<int64_t>(rings_.size());
  const size_t regions = plan.crops.bytes != 0 ? rings_.size() : 0;
  if (host.crops().size() != regions) {
    return Error{Code::kInvalidArgument,
                 "a batch with crops for " + std::to_string(host.crops().size()) +
                     " devices came where " + std::to_string(regions) + " decode"};
  }
  if (host.columns().size() == plan.host.size() && host.rows() <= batch_size) return {};
  return Error{Code::kInvalidArgument, "a batch of " + std::to_string(host.columns().size()) +
                                           " columns and " + std::to_string(host.rows()) +
                                           " rows came where at most " +
                                           std::to_string(plan.host.size()) + " columns and " +
                                           std::to_string(batch_size) + " rows are staged"};
}

// Issues all work that makes the batch. Cancelled if stopped before any of it.
Status DeviceCopier::Impl::Stage(const Entries& entries, const Batch& host) {
  for (RingEntry* entry : entries) TRY(AwaitCopy(*entry));
  const TraceSpan span(trace_, "stoker.copy", host.epoch(), host.index());
  const auto parts = static_cast<int64_t>(entries.size());
  for (int64_t i = 0; i < parts; ++i) {
    RingEntry& entry = *entries[static_cast<size_t>(i)];
    entry.host = host.Share();
    entry.part = static_cast<size_t>(i);
    TRY(StageRows(entry, FirstRowOfPart(host.rows(), i, parts),
                  FirstRowOfPart(host.rows(), i + 1, parts)));
  }
  batches_.fetch_add(1, std::memory_order_relaxed);
  return {};
}

// Issues the work that makes the part of entry.host from row `first` to `end`.
Status DeviceCopier::Impl::StageRows(RingEntry& entry, int64_t first, int64_t end) {
  entry.first_row = first;
  entry.rows = end - first;
  entry.name = entry.host.name();
  const std::span<const uint64_t> ids = entry.host.sample_ids();
  entry.sample_ids.assign(ids.begin() + first, ids.begin() + end);
  for (Column& column : entry.columns) column.shape[0] = entry.rows;
  ASSIGN_OR_RETURN(entry.copied_bytes, IssueBatch(*entry.ring, entry));
  copied_bytes_.fetch_add(entry.copied_bytes, std::memory_order_relaxed);
  entry.issued_ns = NowNanoseconds();
  return {};
}

// Releases the entry's previous host batch first: this limits how far the copier runs ahead of the
// device.
Status DeviceCopier::Impl::AwaitCopy(RingEntry& entry) {
  constexpr std::chrono::microseconds kShort{100}, kLong{1000};
  Result<bool> copied = ReleaseCopied(entry);
  if (copied.ok() && *copied) return {};
  const WaitTimer timer(trace_, "stoker.stage.copy", copy_wait_ns_);
  for (auto pause = kShort; copied.ok() && !*copied; pause = std::min(2 * pause, kLong)) {
    if (stopped_.load()) return Cancelled("the copier was stopped");
    std::this_thread::sleep_for(pause);
    copied = ReleaseCopied(entry);
  }
  return copied.ok() ? Status() : copied.error();
}

// Returns whether the entry holds no host batch (any more).
Result<bool> DeviceCopier::Impl::ReleaseCopied(RingEntry& entry) {
  if (!entry.host) return true;
  Device& device = *entry.ring->device();
  Result<bool> copied = device.IsDone(entry.copied);
  if (!copied.ok() || !*copied) return copied;
  entry.host.Release();
  if (!entry.ring->timed()) return true;
  const Result<uint64_t> elapsed = device.Elapsed(entry.begun, entry.copied);
  if (!elapsed.ok()) return elapsed.error();
  copy_ns_.fetch_add(*elapsed, std::memory_order_relaxed);
  timed_bytes_.fetch_add(entry.copied_bytes, std::memory_order_relaxed);
  return true;
}

Status DeviceCopier::Impl::ReleaseAllCopied() {
  for (const auto& ring : rings_) {
    for (size_t ring_index = 0; ring_index < ring->size(); ++ring_index) {
      if (Result<bool> copied = ReleaseCopied(ring->entry(ring_index)); !copied.ok()) {
        return copied.error();
      }
    }
  }
  return {};
}

void DeviceCopier::Impl::HandOver(Result<SplitBatch> next) {
  std::lock_guard lock(mutex_);
  ready_.push_back(std::move(next));
  ready_changed_.notify_one();
}

// Continues when the item has been taken and Next is called again.
void DeviceCopier::Impl::HandOverAndPause(Result<SplitBatch> next) {
  std::unique_lock lock(mutex_);
  asked_ = false;
  ready_.push_back(std::move(next));
  ready_changed_.notify_one();
  asked_changed_.wait(lock, [&] { return asked_ || stopped_.load(); });
}

// After an error the copier's thread gives the copies' sources back; otherwise the ring owns the
// copies in flight.
void DeviceCopier::Impl::End(Status status) {
  const bool stopped = !status.ok() && status.error().code == Code::kCancelled;
  if (status.ok() || stopped) status = ReleaseAllCopied();
  if (status.ok()) return;
  for (const auto& ring : rings_) {
    AwaitStreams(*ring);
    for (size_t i = 0; i < ring->size(); ++i) ring->entry(i).host.Release();
  }
  std::lock_guard lock(mutex_);
  if (!device_error_) device_error_ = status.error();
  ready_changed_.notify_all();
}

DeviceCopyStats DeviceCopier::Impl::Stats() const {
  DeviceCopyStats stats{.batches = batches_.load(std::memory_order_relaxed),
                        .copied_bytes = copied_bytes_.load(std::memory_order_relaxed),
                        .copy_ns = copy_ns_.load(std::memory_order_relaxed),
                        .timed_bytes = timed_bytes_.load(std::memory_order_relaxed),
                        .ring_wait_ns = ring_wait_ns_.load(std::memory_order_relaxed),
                        .host_wait_ns = host_wait_ns_.load(std::memory_order_relaxed),
                        .copy_wait_ns = copy_wait_ns_.load(std::memory_order_relaxed)};
  AddRingStats(rings_, stats);
  return stats;
}

Status DeviceCopier::CheckBuffers(int buffers) {
  if (buffers >= kFewestBuffers && buffers <= kMaxBuffers) return {};
  return Error{Code::kInvalidArgument, "buffers is " + std::to_string(buffers) +
                                           "; it must be from " + std::to_string(kFewestBuffers) +
                                           " to " + std::to_string(kMaxBuffers)};
}

Result<std::shared_ptr<DeviceRing>> DeviceCopier::MakeRing(std::shared_ptr<Device> device,
                                                           CopyPlan plan, int buffers, bool timed) {
  return DeviceRing::Make(std::move(device), std::move(plan), buffers, timed);
}

DeviceCopier::DeviceCopier(std::vector<std::shared_ptr<DeviceRing>> rings, HostBatches& source,
                           const DeviceCopierOptions& options)
    : impl_(std::make_unique<Impl>(std::move(rings), source, options)) {}

DeviceCopier::DeviceCopier(std::shared_ptr<DeviceRing> ring, HostBatches& source,
                           const DeviceCopierOptions& options)
    : DeviceCopier(std::vector{std::move(ring)}, source, options) {}

// A forked child has neither the thread nor, perhaps, valid locks.
DeviceCopier::~DeviceCopier() {
  if (!impl_->here()) (void)impl_.release();
}

Result<SplitBatch> DeviceCopier::NextParts(const Interrupt& interrupt) {
  return impl_->Next(interrupt);
}

Result<DeviceBatch> DeviceCopier::Next(const Interrupt& interrupt) {
  ASSIGN_OR_RETURN(SplitBatch batch, impl_->Next(interrupt));
  return std::move(batch).Whole();
}

void DeviceCopier::Stop() {
  if (impl_->here()) impl_->Stop();
}

DeviceCopyStats DeviceCopier::Stats() const { return impl_->Stats(); }

}  // namespace stoker
