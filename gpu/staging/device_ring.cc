#include "gpu/staging/device_ring.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/batch/deferred_ops.h"
#include "core/result/try.h"
#include "core/time/stage_times.h"

namespace stoker {

namespace {

// The alignment of columns in a slot's slab. Columns at other offsets are copied one by one.
constexpr uint64_t kColumnAlignment = 4096;

// After a capture that RecordAll has invalidated: 50 ms, up to 6.4 s. Programs capture for a few
// milliseconds to seconds, usually before their first steps.
constexpr uint64_t kFirstPause = 50'000'000;
constexpr int kMaxDoublings = 7;

uint64_t RoundUp(uint64_t bytes, uint64_t to) { return (bytes + to - 1) / to * to; }

Error Invalid(std::string cause) { return {Code::kInvalidArgument, std::move(cause)}; }

// Leaks the device in a forked child, which must not destroy it.
void Leave(std::shared_ptr<Device> device) { new std::shared_ptr<Device>(std::move(device)); }

bool SameValues(const ColumnSpec& a, const ColumnSpec& b) {
  return a.dtype == b.dtype && a.row_shape == b.row_shape;
}

Status CheckJob(const CopyPlan& plan) {
  const DeferredOpsJob& job = plan.job;
  const ColumnSpec& from = plan.host[0];
  const ColumnSpec& to = plan.device[0];
  if (from.dtype != DType::kU8 ||
      from.row_shape != std::vector<int64_t>{job.height, job.width, 3}) {
    return Invalid(
        "the column of the deferred operations is not bytes of the job's height × width × 3");
  }
  const std::vector<int64_t> shape = job.layout == Layout::kNhwc
                                         ? std::vector<int64_t>{job.height, job.width, 3}
                                         : std::vector<int64_t>{3, job.height, job.width};
  if (to.dtype != job.dtype || to.row_shape != shape) {
    return Invalid("the finished column differs from the job's output");
  }
  if (plan.has_work && plan.host.back().row_bytes() != DeferredOpsBytes(job.boxes)) {
    return Invalid("the column of work is not as wide as a row's work");
  }
  return {};
}

Status CheckCrops(const CopyPlan& plan) {
  if (!plan.has_deferred_ops || !plan.has_work || plan.host.size() < 3) {
    return Invalid("crops come without deferred operations");
  }
  const ColumnSpec& places = plan.host[plan.host.size() - 2];
  if (places.dtype != DType::kU64 || !places.row_shape.empty()) {
    return Invalid("the column of the crops' places is not of uint64");
  }
  if (plan.device.size() > plan.host.size() - 2) {
    return Invalid("the column of the crops' places is to be delivered");
  }
  return {};
}

Status CheckPlan(const CopyPlan& plan, int buffers) {
  TRY(DeviceCopier::CheckBuffers(buffers));
  if (plan.batch_size < 1) return Invalid("a batch has no rows");
  if (plan.piece_bytes < 1) return Invalid("a piece has no bytes");
  const size_t delivered = plan.host.size() - (plan.has_work && !plan.host.empty() ? 1 : 0);
  if (plan.device.empty() || plan.device.size() > delivered) {
    return Invalid(std::to_string(plan.device.size()) + " columns are to be delivered of " +
                   std::to_string(delivered));
  }
  for (size_t c = plan.has_deferred_ops ? 1 : 0; c < plan.device.size(); ++c) {
    if (!SameValues(plan.host[c], plan.device[c])) {
      return Invalid("column " + plan.device[c].name +
                     " is copied, and not the same on both sides");
    }
  }
  if (plan.crops.bytes != 0) TRY(CheckCrops(plan));
  return plan.has_deferred_ops ? CheckJob(plan) : Status();
}

}  // namespace

DeviceRing::DeviceRing(std::shared_ptr<Device> device, CopyPlan plan, bool timed)
    : device_(std::move(device)), plan_(std::move(plan)), timed_(timed) {
  const auto rows = static_cast<uint64_t>(plan_.batch_size) + (plan_.has_row_before ? 1 : 0);
  for (const ColumnSpec& column : plan_.host) {
    row_bytes_.push_back(column.row_bytes());
    offsets_.push_back(entry_bytes_);
    entry_bytes_ += RoundUp(column.row_bytes() * rows, kColumnAlignment);
  }
  crops_offset_ = entry_bytes_;
  entry_bytes_ += RoundUp(plan_.crops.bytes, kColumnAlignment);
  sample_bytes_ = plan_.crops.samples * decode::kGroupSamples;
  delivered_offsets_.assign(offsets_.begin(), offsets_.begin() + plan_.device.size());
  if (!plan_.has_deferred_ops) return;
  for (size_t c = 0; c < plan_.device.size(); ++c) {
    delivered_offsets_[c] = entry_bytes_;
    entry_bytes_ += RoundUp(plan_.device[c].row_bytes() * rows, kColumnAlignment);
  }
}

Result<std::shared_ptr<DeviceRing>> DeviceRing::Make(std::shared_ptr<Device> device, CopyPlan plan,
                                                     int buffers, bool timed) {
  if (Status s = CheckPlan(plan, buffers); !s.ok()) return s.error();
  std::shared_ptr<DeviceRing> ring(new DeviceRing(std::move(device), std::move(plan), timed));
  if (Status s = ring->MakeStreams(); !s.ok()) return s.error();
  if (Status s = ring->AllocateSamples(); !s.ok()) return s.error();
  for (int i = 0; i < buffers; ++i) {
    Status added = ring->AddEntry();
    if (added.ok()) continue;
    Error error = std::move(added).error();
    if (error.code == Code::kResourceExhausted) {
      error.cause = std::to_string(buffers) + " batches of " + std::to_string(ring->entry_bytes_) +
                    " bytes do not fit into the memory of " + ring->device_->name().ToString() +
                    ": " + error.cause;
      error.changes = {{OptionChange::How::kLower, "buffers"},
                       {OptionChange::How::kLower, "batch_size"}};
      if (ring->plan_.crops.bytes != 0)
        error.changes.push_back({OptionChange::How::kLower, "crop_bytes"});
    }
    return error;
  }
  return ring;
}

Status DeviceRing::MakeStreams() {
  Result<DeviceStream> copies = device_->MakeStream();
  if (!copies.ok()) return copies.error();
  copy_stream_ = deferred_stream_ = *copies;
  ASSIGN_OR_RETURN(pieces_, PieceCopier::Make(device_, plan_.piece_bytes));
  if (!plan_.has_deferred_ops) return {};
  Result<DeviceStream> deferred = device_->MakeStream(StreamPriority::kHigh);
  if (!deferred.ok()) return deferred.error();
  deferred_stream_ = *deferred;
  return {};
}

Status DeviceRing::AllocateSamples() {
  if (sample_bytes_ == 0) return {};
  Result<void*> memory = device_->Allocate(sample_bytes_);
  if (memory.ok()) {
    samples_ = static_cast<uint8_t*>(*memory);
    return {};
  }
  Error error = std::move(memory).error();
  if (error.code == Code::kResourceExhausted) {
    error.cause = "the samples of a batch's crops, " + std::to_string(sample_bytes_) +
                  " bytes, do not fit into the memory of " + device_->name().ToString() + ": " +
                  error.cause;
    error.advice += (error.advice.empty() ? "" : ". ") +
                    std::string("Let the workers decode (to_device(…, decode=\"workers\"))");
    error.changes = {{OptionChange::How::kLower, "batch_size"},
                     {OptionChange::How::kLower, "crop_bytes"}};
  }
  return error;
}

Status DeviceRing::AddEntry() {
  auto entry = std::make_unique<RingEntry>();
  entry->ring = this;
  entry->ring_index = entries_.size();
  RingEntry& added =
      *entries_.emplace_back(std::move(entry));  // from here on its destructor cleans up
  for (DeviceEvent* event : {&added.begun, &added.copied, &added.arrived, &added.all_done}) {
    if (event == &added.begun && !timed_) continue;
    Result<DeviceEvent> made =
        device_->MakeEvent(timed_ && (event == &added.begun || event == &added.copied));
    if (!made.ok()) return made.error();
    *event = *made;
  }
  Result<void*> memory = device_->Allocate(entry_bytes_);
  if (!memory.ok()) return memory.error();
  added.raw = static_cast<uint8_t*>(*memory);
  for (size_t c = 0; c < plan_.device.size(); ++c) {
    const ColumnSpec& spec = plan_.device[c];
    Column column{spec.name, spec.dtype, {plan_.batch_size}, added.raw + delivered_offsets_[c]};
    column.shape.insert(column.shape.end(), spec.row_shape.begin(), spec.row_shape.end());
    added.columns.push_back(std::move(column));
  }
  handed_out_.push_back(false);
  free_.push_back(&added);
  return {};
}

DeviceRing::~DeviceRing() {
  if (!process_.here()) {
    Leave(std::move(device_));
    (void)pieces_.release();
    return;
  }
  ReleaseHosts();
  for (const std::unique_ptr<RingEntry>& entry : entries_) {
    // Free waits for the device's own streams; a consumer's may be another device object's.
    for (size_t i = 0; i < entry->used; ++i) (void)device_->Synchronize(entry->uses[i].consumed);
    if (entry->raw != nullptr) device_->Free(entry->raw);
    for (DeviceEvent event : {entry->begun, entry->copied, entry->arrived, entry->all_done}) {
      if (event.handle != nullptr) device_->Destroy(event);
    }
    for (const StreamUse& use : entry->uses) device_->Destroy(use.consumed);
  }
  if (samples_ != nullptr) device_->Free(samples_);
  if (deferred_stream_ != copy_stream_) device_->Destroy(deferred_stream_);
  if (copy_stream_.handle != nullptr) device_->Destroy(copy_stream_);
}

RingEntry* DeviceRing::Acquire(const std::atomic<bool>& stop) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return stop.load() || !free_.empty(); });
  if (stop.load()) return nullptr;
  RingEntry* entry = free_.front();
  free_.pop_front();
  return entry;
}

void DeviceRing::Wake() {
  std::lock_guard lock(mutex_);  // not between a waiter's check of `stop` and its sleep
  changed_.notify_all();
}

void DeviceRing::Abandon(RingEntry& entry) {
  std::lock_guard lock(mutex_);
  free_.push_front(&entry);
}

std::shared_ptr<RingEntry> DeviceRing::Lend(RingEntry& entry) {
  {
    std::lock_guard lock(entry.mutex);
    entry.leased = true;
  }
  return {&entry, [ring = shared_from_this()](RingEntry* home) { ring->Return(*home); }};
}

void DeviceRing::Return(RingEntry& entry) {
  if (!process_.here()) return;  // another thread may have held the lock
  bool reusable = false;
  {
    std::lock_guard lock(entry.mutex);  // SeesCapture asks the streams before the consumer goes on
    entry.untracked = entry.untracked || (entry.unnamed && !entry.named);
    entry.leased = entry.unnamed = entry.named = false;
    reusable = RecordUses(entry);
  }
  std::lock_guard lock(mutex_);
  if (handed_out_[entry.ring_index]) --handed_out_count_;
  handed_out_[entry.ring_index] = false;
  if (reusable) {
    free_.push_back(&entry);
    changed_.notify_all();
  } else {
    pending_.push_back(&entry);
  }
}

bool DeviceRing::RecordUses(RingEntry& entry) const {
  for (size_t i = 0; i < entry.used && !entry.untracked; ++i) {
    const StreamUse& use = entry.uses[i];
    if (device_->Record(use.consumed, use.stream).ok()) continue;
    const Result<bool> capture = device_->IsCapturing(use.stream);
    if (capture.ok() && *capture) return false;
    entry.untracked = true;  // the stream, or its context, has gone
  }
  return !entry.untracked;
}

bool DeviceRing::SeesCapture() {
  // A stream whose state cannot be queried counts as idle: RecordAll reports its error.
  const auto captures = [this](DeviceStream stream) {
    const Result<bool> capture = device_->IsCapturing(stream);
    return capture.ok() && *capture;
  };
  if (captures(LegacyDefaultStream())) return true;
  for (const std::unique_ptr<RingEntry>& entry : entries_) {
    std::lock_guard lock(entry->mutex);
    if (!entry->leased || (entry->unnamed && !entry->named)) continue;
    for (size_t i = 0; i < entry->used; ++i) {
      if (captures(entry->uses[i].stream)) return true;
    }
  }
  return false;
}

Status DeviceRing::Reclaim() {
  std::vector<RingEntry*> pending;
  bool may_record = false;
  {
    std::lock_guard lock(mutex_);
    if (pending_.empty()) return {};
    pending.swap(pending_);
    may_record = NowNanoseconds() >= next_record_ns_;
  }
  may_record = may_record && !SeesCapture();
  Status status;
  bool recorded = false;
  const auto reusable = [&](RingEntry* entry) {
    if (RecordUses(*entry)) return true;
    if (!entry->untracked || !may_record || !status.ok()) return false;
    status = device_->RecordAll(entry->all_done);
    recorded = recorded || status.ok();
    return status.ok();
  };
  const auto kept = std::stable_partition(pending.begin(), pending.end(), reusable);
  const bool refused = !status.ok() && status.error().code == Code::kFailedPrecondition;
  std::lock_guard lock(mutex_);
  free_.insert(free_.end(), pending.begin(), kept);
  pending_.insert(pending_.end(), kept, pending.end());
  if (kept != pending.begin()) changed_.notify_all();
  if (refused) {
    ++all_refusals_;
    next_record_ns_ = NowNanoseconds() + (kFirstPause << std::min(refusals_++, kMaxDoublings));
  } else if (recorded) {
    refusals_ = 0;
  }
  return refused ? Status() : status;
}

void DeviceRing::ReleaseHosts() {
  if (!process_.here()) return;
  for (const std::unique_ptr<RingEntry>& entry : entries_) {
    if (entry->host && !device_->Synchronize(entry->copied).ok()) (void)device_->SynchronizeAll();
    entry->host.Release();
  }
}

void DeviceRing::HandOut(const RingEntry& entry) {
  std::lock_guard lock(mutex_);
  handed_out_[entry.ring_index] = true;
  ++handed_out_count_;
}

uint64_t DeviceRing::invalidated_captures() const {
  std::lock_guard lock(mutex_);
  return all_refusals_;
}

bool DeviceRing::AllHandedOut() const {
  std::lock_guard lock(mutex_);
  return handed_out_count_ == entries_.size();
}

void AddRingStats(std::span<const std::shared_ptr<DeviceRing>> rings, DeviceCopyStats& stats) {
  stats.device_bytes = stats.invalidated_captures = 0;
  for (const std::shared_ptr<DeviceRing>& ring : rings) {
    stats.device_bytes += ring->bytes();
    stats.invalidated_captures += ring->invalidated_captures();
  }
}

}  // namespace stoker
