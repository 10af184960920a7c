#include "gpu/stager.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "core/stage_times.h"
#include "core/start_thread.h"
#include "core/trace.h"
#include "core/try.h"
#include "gpu/device_ring.h"
#include "gpu/issue_batch.h"

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

}  // namespace

class Stager::Impl {
 public:
  Impl(std::shared_ptr<DeviceRing> ring, HostBatches& source, const StagerOptions& options)
      : ring_(std::move(ring)),
        device_(*ring_->device()),
        source_(source),
        options_(options),
        trace_(options.trace != nullptr ? *options.trace : silence_) {}

  ~Impl() {
    Stop();
    if (thread_.joinable()) thread_.join();
  }

  Result<DeviceBatch> Next(const Interrupt& interrupt);
  void Stop();
  StagerStats Stats() const;
  bool here() const { return ring_->process().here(); }

 private:
  // Called on the consumer's thread.
  Status Start();
  bool Await(std::unique_lock<std::mutex>& lock, const Interrupt& interrupt);
  void Reclaim(std::unique_lock<std::mutex>& lock);
  bool Ended() const { return !ready_.empty() || device_error_ || stopped_.load(); }
  Error AllAreHeld() const;

  // The body of the stager's thread.
  void Run();
  StagedBatch* Acquire();
  Result<Batch> TakeFromSource();
  Status Check(const Batch& host) const;
  Status Stage(StagedBatch& entry, Batch host);
  Status AwaitCopy(StagedBatch& entry);
  Status AwaitUsers(StagedBatch& entry);
  Result<bool> ReleaseCopied(StagedBatch& entry);
  Status ReleaseAllCopied();
  void HandOver(Result<DeviceBatch> next);
  void HandOverAndPause(Result<DeviceBatch> next);
  void AwaitStreams();
  void End(Status status);

  const std::shared_ptr<DeviceRing> ring_;
  Device& device_;
  HostBatches& source_;
  const StagerOptions options_;
  const Trace silence_;
  const Trace& trace_;

  bool batch_since_end_ = true;  // used by the stager's thread only

  std::mutex mutex_;
  std::condition_variable ready_changed_;
  std::condition_variable asked_changed_;
  std::deque<Result<DeviceBatch>> ready_;  // in order
  bool asked_ = false;                     // the consumer waits for a batch
  std::optional<Error> device_error_;      // the end, as the last item
  std::atomic<bool> stopped_ = false;      // set under mutex_
  std::thread thread_;                     // under mutex_, until it is joined

  Counter batches_ = 0, copied_bytes_ = 0, copy_ns_ = 0;
  Counter ring_wait_ns_ = 0, host_wait_ns_ = 0, copy_wait_ns_ = 0;
};

Result<DeviceBatch> Stager::Impl::Next(const Interrupt& interrupt) {
  if (Status s = ring_->process().Check(device_.name().ToString()); !s.ok()) return s.error();
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
    if (!ring_->AllHandedOut()) {
      all_held_since = 0;
    } else if (all_held_since == 0 && patience > 0) {
      all_held_since = now;
    } else if (now - all_held_since >= patience) {
      return AllAreHeld();
    }
    if (Await(lock, interrupt)) return Cancelled("the wait was interrupted");
    Reclaim(lock);
  }
  if (device_error_) return *device_error_;
  if (stopped_.load()) return Cancelled("the stager was stopped");
  Result<DeviceBatch> next = std::move(ready_.front());
  ready_.pop_front();
  if (next.ok() && *next) ring_->HandOut(*next->Owner());
  return next;
}

// An error here comes from the device and ends the stager.
void Stager::Impl::Reclaim(std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  Status status = ring_->Reclaim();
  lock.lock();
  if (status.ok() || device_error_) return;
  device_error_ = std::move(status).error();
  stopped_ = true;
  asked_changed_.notify_all();
  lock.unlock();
  ring_->Wake();
  lock.lock();
}

// Waits for a while; returns whether it was interrupted.
bool Stager::Impl::Await(std::unique_lock<std::mutex>& lock, const Interrupt& interrupt) {
  if (ready_changed_.wait_for(lock, kInterruptInterval, [&] { return Ended(); })) return false;
  if (!interrupt) return false;
  lock.unlock();  // `interrupt` may be slow, or call Stop
  const bool interrupted = interrupt();
  lock.lock();
  return interrupted;  // and takes nothing, even if a batch has become ready meanwhile
}

// Requires mutex_.
Status Stager::Impl::Start() {
  if (thread_.joinable() || stopped_.load()) return {};
  ASSIGN_OR_RETURN(thread_, StartThread("the stager's thread", [this] { Run(); }));
  return {};
}

Error Stager::Impl::AllAreHeld() const {
  return {.code = Code::kResourceExhausted,
          .cause = "the caller holds " + std::to_string(ring_->size()) + " batches on " +
                   device_.name().ToString() + ", all that there is memory for",
          .advice =
              "Release batches before taking more (copy what is to be kept: labels lie with their "
              "images, and objects in reference cycles hold them, too), or raise buffers"};
}

void Stager::Impl::Stop() {
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
    ready_changed_.notify_all();
    asked_changed_.notify_all();
  }
  ring_->Wake();
}

void Stager::Impl::Run() {
  NameThread("stoker/stager");
  Status status;
  StagedBatch* entry = nullptr;
  while (status.ok()) {
    if (entry == nullptr) entry = Acquire();
    if (entry == nullptr) break;
    status = ReleaseAllCopied();  // the source may be waiting for their memory
    if (!status.ok()) break;
    Result<Batch> host = TakeFromSource();
    if (stopped_.load()) break;
    if (!host.ok()) {
      HandOverAndPause(std::move(host).error());
    } else if (*host) {
      status = Stage(*entry, *std::move(host));
      if (!status.ok()) break;
      HandOver(DeviceBatch(ring_->Lend(*std::exchange(entry, nullptr))));
      batch_since_end_ = true;
    } else if (options_.across_epochs && std::exchange(batch_since_end_, false)) {
      HandOver(DeviceBatch());
    } else {
      HandOverAndPause(DeviceBatch());
    }
  }
  if (entry != nullptr) ring_->Abandon(*entry);
  End(std::move(status));
}

// Returns null if stopped.
StagedBatch* Stager::Impl::Acquire() {
  const WaitTimer timer(trace_, "stoker.stage.ring", ring_wait_ns_);
  return ring_->Acquire(stopped_);
}

Result<Batch> Stager::Impl::TakeFromSource() {
  const WaitTimer timer(trace_, "stoker.stage.host", host_wait_ns_);
  Result<Batch> host = source_.Next([this] { return stopped_.load(); });
  if (!host.ok() || !*host) return host;
  if (Status s = Check(*host); !s.ok()) return s.error();
  return host;
}

// Checks that the host batch fits the ring.
Status Stager::Impl::Check(const Batch& host) const {
  const StagePlan& plan = ring_->plan();
  if (host.columns().size() == plan.host.size() && host.rows() <= plan.batch_size) return {};
  return Error{Code::kInvalidArgument, "a batch of " + std::to_string(host.columns().size()) +
                                           " columns and " + std::to_string(host.rows()) +
                                           " rows came where at most " +
                                           std::to_string(plan.host.size()) + " columns and " +
                                           std::to_string(plan.batch_size) + " rows are staged"};
}

// Issues all work that makes the batch. Cancelled if stopped before any of it.
Status Stager::Impl::Stage(StagedBatch& entry, Batch host) {
  TRY(AwaitCopy(entry));
  TRY(AwaitUsers(entry));
  const TraceSpan span(trace_, "stoker.copy", host.epoch(), host.index());
  entry.host = std::move(host);
  const Batch& kept = entry.host;
  const Result<uint64_t> bytes = IssueBatch(*ring_, entry);
  if (!bytes.ok()) return bytes.error();
  copied_bytes_.fetch_add(*bytes, std::memory_order_relaxed);
  entry.sample_ids.assign(kept.sample_ids().begin(), kept.sample_ids().end());
  entry.rows = kept.rows();
  entry.name = kept.name();
  for (Column& column : entry.columns) column.shape[0] = entry.rows;
  entry.issued_ns = NowNanoseconds();
  batches_.fetch_add(1, std::memory_order_relaxed);
  return {};
}

// Releases the entry's previous host batch first: this limits how far the stager runs ahead of the
// device.
Status Stager::Impl::AwaitCopy(StagedBatch& entry) {
  constexpr std::chrono::microseconds kShort{100}, kLong{1000};
  Result<bool> copied = ReleaseCopied(entry);
  if (copied.ok() && *copied) return {};
  const WaitTimer timer(trace_, "stoker.stage.copy", copy_wait_ns_);
  for (auto pause = kShort; copied.ok() && !*copied; pause = std::min(2 * pause, kLong)) {
    if (stopped_.load()) return Cancelled("the stager was stopped");
    std::this_thread::sleep_for(pause);
    copied = ReleaseCopied(entry);
  }
  return copied.ok() ? Status() : copied.error();
}

// Makes later work of the stager's streams wait for what it overwrites: the copy for the kernel
// that reads what was copied before, and the kernel for the consumers. Without deferred operations
// the streams are one.
Status Stager::Impl::AwaitUsers(StagedBatch& entry) {
  Status s = device_.Wait(ring_->copy_stream(), entry.arrived);
  if (s.ok() && entry.untracked) s = device_.Wait(ring_->deferred_stream(), entry.all_done);
  for (size_t i = 0; s.ok() && i < entry.used; ++i) {
    s = device_.Wait(ring_->deferred_stream(), entry.uses[i].consumed);
  }
  if (!s.ok()) return s;
  entry.untracked = false;
  entry.used = 0;
  return s;
}

// Returns whether the entry holds no host batch (any more).
Result<bool> Stager::Impl::ReleaseCopied(StagedBatch& entry) {
  if (!entry.host) return true;
  Result<bool> copied = device_.Done(entry.copied);
  if (!copied.ok() || !*copied) return copied;
  entry.host.Release();
  if (!ring_->timed()) return true;
  const Result<uint64_t> elapsed = device_.Elapsed(entry.begun, entry.copied);
  if (!elapsed.ok()) return elapsed.error();
  copy_ns_.fetch_add(*elapsed, std::memory_order_relaxed);
  return true;
}

Status Stager::Impl::ReleaseAllCopied() {
  for (size_t ring_index = 0; ring_index < ring_->size(); ++ring_index) {
    if (Result<bool> copied = ReleaseCopied(ring_->entry(ring_index)); !copied.ok()) {
      return copied.error();
    }
  }
  return {};
}

void Stager::Impl::HandOver(Result<DeviceBatch> next) {
  std::lock_guard lock(mutex_);
  ready_.push_back(std::move(next));
  ready_changed_.notify_one();
}

// Continues when the item has been taken and Next is called again.
void Stager::Impl::HandOverAndPause(Result<DeviceBatch> next) {
  std::unique_lock lock(mutex_);
  asked_ = false;
  ready_.push_back(std::move(next));
  ready_changed_.notify_one();
  asked_changed_.wait(lock, [&] { return asked_ || stopped_.load(); });
}

// Waits for what has been issued, also without an event after it. Only if that fails it waits for
// all of the device, which would invalidate captures; if that fails too, the device is lost and
// reads nothing any more.
void Stager::Impl::AwaitStreams() {
  const StagedBatch& entry = ring_->entry(0);  // its events may be late
  const bool done = device_.Record(entry.copied, ring_->copy_stream()).ok() &&
                    device_.Synchronize(entry.copied).ok() &&
                    device_.Record(entry.arrived, ring_->deferred_stream()).ok() &&
                    device_.Synchronize(entry.arrived).ok();
  if (!done) (void)device_.SynchronizeAll();
}

// After an error the stager's thread gives the copies' sources back; otherwise the ring owns the
// copies in flight.
void Stager::Impl::End(Status status) {
  const bool stopped = !status.ok() && status.error().code == Code::kCancelled;
  if (status.ok() || stopped) status = ReleaseAllCopied();
  if (status.ok()) return;
  AwaitStreams();
  for (size_t ring_index = 0; ring_index < ring_->size(); ++ring_index)
    ring_->entry(ring_index).host.Release();
  std::lock_guard lock(mutex_);
  if (!device_error_) device_error_ = status.error();
  ready_changed_.notify_all();
}

StagerStats Stager::Impl::Stats() const {
  return {.batches = batches_.load(std::memory_order_relaxed),
          .copied_bytes = copied_bytes_.load(std::memory_order_relaxed),
          .copy_ns = copy_ns_.load(std::memory_order_relaxed),
          .ring_wait_ns = ring_wait_ns_.load(std::memory_order_relaxed),
          .host_wait_ns = host_wait_ns_.load(std::memory_order_relaxed),
          .copy_wait_ns = copy_wait_ns_.load(std::memory_order_relaxed),
          .device_bytes = ring_->bytes(),
          .invalidated_captures = ring_->invalidated_captures()};
}

Status Stager::CheckBuffers(int buffers) {
  if (buffers >= kFewestBuffers && buffers <= kMaxBuffers) return {};
  return Error{Code::kInvalidArgument, "buffers is " + std::to_string(buffers) +
                                           "; it must be from " + std::to_string(kFewestBuffers) +
                                           " to " + std::to_string(kMaxBuffers)};
}

Result<std::shared_ptr<DeviceRing>> Stager::MakeRing(std::shared_ptr<Device> device, StagePlan plan,
                                                     int buffers, bool timed) {
  return DeviceRing::Make(std::move(device), std::move(plan), buffers, timed);
}

Stager::Stager(std::shared_ptr<DeviceRing> ring, HostBatches& source, const StagerOptions& options)
    : impl_(std::make_unique<Impl>(std::move(ring), source, options)) {}

// A forked child has neither the thread nor, perhaps, valid locks.
Stager::~Stager() {
  if (!impl_->here()) (void)impl_.release();
}

Result<DeviceBatch> Stager::Next(const Interrupt& interrupt) { return impl_->Next(interrupt); }

void Stager::Stop() {
  if (impl_->here()) impl_->Stop();
}

StagerStats Stager::Stats() const { return impl_->Stats(); }

}  // namespace stoker
