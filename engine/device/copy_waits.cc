#include "engine/device/copy_waits.h"

#include <algorithm>

#include "core/time/stage_times.h"

namespace stoker {

namespace {

uint64_t Scaled(uint64_t part, uint64_t amount, uint64_t whole) {
  if (part == 0 || amount >= whole) return part;
  const double scaled =
      static_cast<double>(part) * static_cast<double>(amount) / static_cast<double>(whole);
  return static_cast<uint64_t>(std::min(scaled, 0x1p63));  // 292 years, which can be converted
}

// Scales the causes of a wait of length `whole` to `amount`; unexplained time is other.
WaitCauses PartOf(const WaitCauses& causes, uint64_t amount, uint64_t whole) {
  WaitCauses part;
  uint64_t left = amount;
  const auto take = [&](uint64_t ns) {
    const uint64_t taken = std::min(left, Scaled(ns, amount, whole));
    left -= taken;
    return taken;
  };
  part.storage_ns = take(causes.storage_ns);
  part.decode_ns = take(causes.decode_ns);
  part.map_ns = take(causes.map_ns);
  part.copy_ns = take(causes.copy_ns);
  part.other_ns = left;
  return part;
}

}  // namespace

WaitCauses ExplainCopyWait(const HostWait& host, uint64_t issued_ns, uint64_t asked_ns,
                           uint64_t taken_ns) {
  const uint64_t end = std::max(asked_ns, taken_ns);
  const uint64_t begun = std::clamp(host.asked_ns, asked_ns, end);
  const uint64_t had = std::clamp(host.taken_ns, begun, end);
  const uint64_t issued = std::clamp(issued_ns, had, end);
  WaitCauses causes = PartOf(host.causes, had - begun,
                             host.taken_ns > host.asked_ns ? host.taken_ns - host.asked_ns : 0);
  causes.copy_ns += issued - had;
  causes.other_ns += begun - asked_ns + end - issued;
  return causes;
}

CopyWaits::Totals& CopyWaits::Totals::operator+=(const Totals& other) {
  wait_ns += other.wait_ns;
  waited += other.waited;
  consumer_ns += other.consumer_ns;
  return *this;
}

void CopyWaits::Totals::ReplaceWaitsOf(LoaderStats& stats) const {
  stats.wait_ns = wait_ns;
  stats.waited = waited;
  stats.consumer_ns = consumer_ns;
}

void CopyWaits::AddHostWait(const HostWait& wait) {
  std::lock_guard lock(mutex_);
  pending_.push_back(wait);
}

void CopyWaits::AddDeviceWait(BatchName name, uint64_t issued_ns, uint64_t asked_ns,
                              uint64_t taken_ns) {
  std::lock_guard lock(mutex_);
  const auto host = std::ranges::find(pending_, name, &HostWait::name);
  if (host == pending_.end()) return Add({.other_ns = taken_ns - asked_ns}, asked_ns, taken_ns);
  const WaitCauses causes = ExplainCopyWait(*host, issued_ns, asked_ns, taken_ns);
  pending_.erase(pending_.begin(), host + 1);
  Add(causes, asked_ns, taken_ns);
}

void CopyWaits::AddOtherWait(uint64_t asked_ns, uint64_t taken_ns) {
  std::lock_guard lock(mutex_);
  Add({.other_ns = taken_ns - asked_ns}, asked_ns, taken_ns);
}

void CopyWaits::Add(const WaitCauses& causes, uint64_t asked_ns, uint64_t taken_ns) {
  totals_.wait_ns += taken_ns - asked_ns;
  totals_.waited += causes;
  if (last_taken_ns_ != 0) totals_.consumer_ns += asked_ns - last_taken_ns_;
  last_taken_ns_ = taken_ns;
}

void CopyWaits::Drop() {
  std::lock_guard lock(mutex_);
  pending_.clear();
  last_taken_ns_ = 0;
}

CopyWaits::Totals CopyWaits::totals() const {
  std::lock_guard lock(mutex_);
  return totals_;
}

Result<SplitBatch> TakeFromCopier(DeviceCopier& copier, CopyWaits& waits,
                                  const Interrupt& interrupt) {
  const uint64_t asked_ns = NowNanoseconds();
  Result<SplitBatch> batch = copier.NextParts(interrupt);
  const uint64_t taken_ns = NowNanoseconds();
  if (batch.ok() && *batch) {
    waits.AddDeviceWait(batch->name(), batch->issued_ns(), asked_ns, taken_ns);
  } else if (batch.ok() || batch.error().code != Code::kCancelled) {
    waits.AddOtherWait(asked_ns, taken_ns);
  }
  return batch;
}

}  // namespace stoker
