#include "io/cache/disk_cache.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/hash/crc32c.h"
#include "core/result/plural.h"
#include "core/result/try.h"

namespace stoker {

namespace {

constexpr uint64_t kLeastCacheBytes = 64 << 10;
// A cache has about this many segments, each of at least and at most these bytes.
constexpr uint64_t kUsualSegments = 64;
constexpr uint64_t kLeastSegmentBytes = 1 << 20, kMostSegmentBytes = uint64_t{64} << 30;
// The most segments open at a time: caches of other sizes may have left more.
constexpr size_t kMostOpenSegments = 512;

// The length of a range of 4 GiB and more is part of its key, and only there.
CacheExtent ExtentIn(uint32_t slot, const CacheRecord& record) {
  constexpr uint64_t kMost = ~uint32_t{0};
  return {.slot = slot,
          .position = record.position,
          .length = static_cast<uint32_t>(std::min(record.length, kMost)),
          .checksum = record.checksum};
}

bool IsFullDisk(int error_number) { return error_number == ENOSPC || error_number == EDQUOT; }

}  // namespace

Result<std::shared_ptr<DiskCache>> DiskCache::Open(const std::string& folder, uint64_t bytes,
                                                   DiskCacheSettings settings) {
  if (bytes < kLeastCacheBytes) {
    return Error{.code = Code::kInvalidArgument,
                 .cause = "a cache of " + std::to_string(bytes) + " bytes is too small",
                 .file = folder,
                 .advice = "Give it 64 KiB or more; the size of the data set is best"};
  }
  ASSIGN_OR_RETURN(CacheFolder opened, CacheFolder::Open(folder));
  auto cache = std::make_shared<DiskCache>(std::move(opened), bytes, std::move(settings));
  const std::lock_guard writing(cache->writing_);
  cache->Trim();
  cache->Refresh();
  return cache;
}

DiskCache::DiskCache(CacheFolder folder, uint64_t bytes, DiskCacheSettings settings)
    : folder_(std::move(folder)),
      bytes_(bytes),
      settings_(std::move(settings)),
      process_(getpid()) {}

// --- Reading ---------------------------------------------------------------------------------

bool DiskCache::Read(const CachedObject& object, uint64_t offset, std::span<uint8_t> to) {
  return Read(object.KeyOf(offset, to.size()), to);
}

bool DiskCache::Read(const RangeKey& key, std::span<uint8_t> to) {
  if (to.empty()) return true;
  ReadResult found = TryRead(key, to);
  if (found == ReadResult::kNo)
    found = TryRead(key, to);  // its segment was removed: others may have it
  if (found != ReadResult::kYes) {
    ++misses_;
    return false;
  }
  ++hits_;
  hit_bytes_ += to.size();
  return true;
}

bool DiskCache::Prefetch(const CachedObject& object, uint64_t offset, uint64_t length) {
  return Prefetch(object.KeyOf(offset, length)).has_value();
}

std::optional<uint64_t> DiskCache::Prefetch(const RangeKey& key) {
  const std::optional<CacheExtent> extent = ExtentOf(key);
  const auto segment = extent ? SegmentAt(extent->slot) : nullptr;
  if (segment == nullptr) {
    ++misses_;
    return std::nullopt;
  }
  segment->Prefetch(extent->position, extent->length);
  return extent->length;
}

std::optional<CacheExtent> DiskCache::ExtentOf(const RangeKey& key) {
  std::optional<CacheExtent> extent = table_.Find(key.number);
  if (extent) return extent;
  // If the lock is taken, another thread looks for what others have kept, or adds a range.
  if (std::unique_lock writing(writing_, std::try_to_lock); writing) Refresh();
  return table_.Find(key.number);
}

DiskCache::ReadResult DiskCache::TryRead(const RangeKey& key, std::span<uint8_t> to) {
  const std::optional<CacheExtent> extent = ExtentOf(key);
  if (!extent) return ReadResult::kNo;
  const std::shared_ptr<CacheSegment> segment = SegmentAt(extent->slot);
  if (segment == nullptr) {  // forgotten while its records were loaded
    table_.Remove(key.number, *extent);
    return ReadResult::kNo;
  }
  switch (segment->Read(extent->position, to, key.check, extent->checksum)) {
    case CacheSegment::Outcome::kRead:
      return ReadResult::kYes;
    case CacheSegment::Outcome::kGone:
      Forget(extent->slot);
      return ReadResult::kNo;
    case CacheSegment::Outcome::kDamaged:
      ++damaged_;
      table_.Remove(key.number, *extent);
      return ReadResult::kBroken;
    case CacheSegment::Outcome::kFailed:
      break;
  }
  Fail(errno, "cannot read " + segment->name().Data());
  return ReadResult::kBroken;
}

std::shared_ptr<CacheSegment> DiskCache::SegmentAt(uint32_t slot) const {
  const std::shared_lock lock(segments_mutex_);
  return slot < segments_.size() ? segments_[slot] : nullptr;
}

void DiskCache::Forget(uint32_t slot) {
  std::shared_ptr<CacheSegment> segment;
  {
    const std::unique_lock lock(segments_mutex_);
    segment = std::exchange(segments_[slot], nullptr);
  }
  if (segment != nullptr) table_.RemoveSlot(slot);
}

// --- Changes by other processes --------------------------------------------------------------

void DiskCache::Refresh() {
  if (detached_) return;
  if (folder_.removed()) return Detach();
  LoadNewest();
  const uint64_t number = folder_.last_number();
  if (number == last_seen_) return;
  last_seen_ = number;
  LoadSegments();
}

void DiskCache::LoadSegments() {
  std::vector<SegmentName> now, leftovers;
  if (const int failed = folder_.List(now, leftovers)) return Fail(failed, "cannot list the cache");
  const std::vector<SegmentName> before = std::exchange(found_, std::move(now));
  ForgetRemoved();
  const size_t skip = found_.size() > kMostOpenSegments ? found_.size() - kMostOpenSegments : 0;
  for (const SegmentName& name : std::span(found_).subspan(skip)) {
    if (std::ranges::find(before, name) == before.end()) LoadSegment(name);
  }
}

// Otherwise the table would keep ranges that are no longer requested.
void DiskCache::ForgetRemoved() {
  std::vector<uint32_t> removed;
  {
    const std::shared_lock lock(segments_mutex_);
    for (uint32_t slot = 0; slot < segments_.size(); ++slot) {
      const auto& segment = segments_[slot];
      if (segment == nullptr) continue;
      if (std::ranges::find(found_, segment->name()) == found_.end()) removed.push_back(slot);
    }
  }
  for (const uint32_t slot : removed) Forget(slot);
}

void DiskCache::LoadSegment(const SegmentName& name) {
  int failed = 0;
  std::shared_ptr<CacheSegment> segment = CacheSegment::Open(folder_, name, failed);
  if (segment == nullptr) {
    // Another process may have removed it.
    if (failed != ENOENT) Fail(failed, "cannot open " + name.Data());
    return;
  }
  if (newest_ != nullptr) newest_->CloseIndex();
  size_t open = 0;
  std::optional<uint32_t> oldest;
  {
    const std::unique_lock lock(segments_mutex_);
    if (segments_.size() == CacheTable::kMostSlots) return;
    for (uint32_t slot = 0; slot < segments_.size(); ++slot) {
      if (segments_[slot] == nullptr) continue;
      if (!oldest) oldest = slot;
      ++open;
    }
    newest_slot_ = static_cast<uint32_t>(segments_.size());
    segments_.push_back(segment);
  }
  if (open >= kMostOpenSegments) Forget(*oldest);
  newest_ = std::move(segment);
  LoadNewest();
}

void DiskCache::LoadNewest() {
  if (newest_ == nullptr) return;
  newest_->Load([this](const CacheRecord& record) {
    if (record.position >= CacheTable::kMostPositions) return;
    table_.Put(record.key, ExtentIn(newest_slot_, record));
  });
}

void DiskCache::Detach() {
  detached_ = true;
  newest_ = nullptr;
  {
    const std::unique_lock lock(segments_mutex_);
    for (auto& segment : segments_) segment = nullptr;  // its disk space is free again
  }
  table_.Clear();
  Fail(ENOENT, "the cache was removed while it was in use");
}

// --- Writing ---------------------------------------------------------------------------------

void DiskCache::Write(const CachedObject& object, uint64_t offset, std::span<const uint8_t> bytes) {
  (void)Write(object.KeyOf(offset, bytes.size()), bytes);
}

bool DiskCache::MayWrite(uint64_t bytes) const {
  return !IsPaused(bytes) && folder_.writable() && getpid() == process_;
}

bool DiskCache::Write(const RangeKey& key, std::span<const uint8_t> bytes) {
  if (bytes.empty() || table_.Find(key.number)) return false;
  if (!MayWrite(bytes.size())) {
    ++refused_;
    return false;
  }
  const std::optional<Reserved> reserved = Reserve(key, bytes.size());
  if (!reserved) return false;
  const CacheRecord record{.key = key.number,
                           .position = reserved->position,
                           .length = bytes.size(),
                           .checksum = Crc32c(bytes, key.check)};
  return Commit(*reserved, record,
                reserved->segment->Write(settings_.write, reserved->position, bytes));
}

std::optional<DiskCache::Reserved> DiskCache::Reserve(const RangeKey& key, uint64_t length) {
  const std::lock_guard writing(writing_);
  if (IsPaused(length)) {  // another thread has failed meanwhile
    ++refused_;
    return std::nullopt;
  }
  const std::optional<CacheLock> lock = folder_.Lock();
  if (!lock) {
    Fail(errno, "cannot lock the cache");
    return std::nullopt;
  }
  Refresh();
  // Another process was faster, or another thread is about to be.
  if (table_.Find(key.number)) return std::nullopt;
  if (std::ranges::find(pending_, key.number) != pending_.end()) return std::nullopt;
  Reserved reserved;
  const int failed = detached_ ? EFBIG : ReserveAnywhere(length, reserved);
  if (failed == 0) {
    pending_.push_back(key.number);
    return reserved;
  }
  if (failed == EFBIG) {
    ++refused_;
    Pause(length);
  } else {
    Fail(failed, "cannot add to the cache");
  }
  return std::nullopt;
}

int DiskCache::ReserveAnywhere(uint64_t length, Reserved& reserved) {
  for (const bool again : {false, true}) {
    if (newest_ != nullptr && newest_->Use()) {
      reserved = {.segment = newest_, .slot = newest_slot_};
      const int failed = newest_->Reserve(length, reserved.position);
      if (failed != EFBIG) return failed;
    }
    if (again) break;
    if (const int failed = AddSegment(length)) return failed;
  }
  return EFBIG;
}

int DiskCache::AddSegment(uint64_t length) {
  const uint64_t most = bytes_ - kCacheBlockBytes;  // one block belongs to the lock file
  if (length > most) return EFBIG;
  const uint64_t least = SegmentBytesFor(length);
  const uint64_t usual = std::clamp(bytes_ / kUsualSegments, kLeastSegmentBytes, kMostSegmentBytes);
  uint64_t capacity = std::min({std::max(usual, least), most, FileSizeLimit()});
  if (capacity < least) return EFBIG;
  uint64_t taken = 0;
  if (const int failed = MakeRoom(most - capacity, settings_.idle, taken)) return failed;
  if (taken >= most) return EFBIG;
  capacity = std::min(capacity, most - taken) / kCacheBlockBytes * kCacheBlockBytes;
  if (capacity < least) return EFBIG;
  SegmentName name;
  if (const int failed = folder_.Add(capacity, name)) return failed;
  last_seen_ = folder_.last_number();
  LoadSegments();
  return 0;
}

// Removes unused segments, at most `files`, until all others together have at most `most` bytes;
// sets `taken` to their bytes.
int DiskCache::MakeRoom(uint64_t most, std::chrono::seconds idle, uint64_t& taken, size_t files) {
  std::vector<SegmentName> names, leftovers;
  if (const int failed = folder_.List(names, leftovers)) return failed;
  for (const SegmentName& name : leftovers) folder_.RemoveLeftover(name);
  std::vector<std::pair<int64_t, size_t>> by_use;
  taken = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    taken += names[i].capacity;
    by_use.emplace_back(folder_.LastUse(names[i]), i);
  }
  std::ranges::sort(by_use);
  for (const auto& [used, i] : by_use) {
    if (taken <= most || files == 0) break;
    if (!folder_.Remove(names[i], idle.count())) continue;
    taken -= names[i].capacity;
    --files;
    ++removed_;
  }
  return 0;
}

void DiskCache::Trim() {
  if (!folder_.writable()) return;
  uint64_t taken = 0;
  const std::optional<CacheLock> lock = folder_.Lock();
  if (lock) (void)MakeRoom(bytes_ - kCacheBlockBytes, settings_.idle, taken);
}

bool DiskCache::Commit(const Reserved& reserved, const CacheRecord& record, int failed) {
  const std::lock_guard writing(writing_);
  std::erase(pending_, record.key);
  const std::optional<CacheLock> lock = folder_.Lock();
  if (!lock) {
    Fail(errno, "cannot lock the cache");
    return false;
  }
  if (failed == 0) failed = reserved.segment->Append(settings_.write, folder_, record);
  if (failed == 0) {
    table_.Put(record.key, ExtentIn(reserved.slot, record));
    ++kept_;
    kept_bytes_ += record.length;
    return true;
  }
  reserved.segment->GiveBack(record.position, record.length);
  if (failed == EFBIG) {
    ++refused_;
    return false;
  }
  // A disk may be full before the cache is.
  uint64_t taken = 0;
  if (IsFullDisk(failed)) (void)MakeRoom(/*most=*/0, settings_.idle, taken, /*files=*/1);
  Fail(failed, "cannot write to the cache");
  return false;
}

bool DiskCache::IsPaused(uint64_t length) const {
  if (length < full_from_.load(std::memory_order_relaxed)) return false;
  return Clock::now().time_since_epoch().count() < full_until_.load(std::memory_order_relaxed);
}

void DiskCache::Pause(uint64_t length) {
  full_from_.store(length, std::memory_order_relaxed);
  full_until_.store((Clock::now() + settings_.pause).time_since_epoch().count(),
                    std::memory_order_relaxed);
}

// --- Reporting -------------------------------------------------------------------------------

void DiskCache::Fail(int error_number, const std::string& what) {
  Error error = SystemError(error_number, what, folder_.path());
  if (IsFullDisk(error_number)) error.advice = "Free some space, or give the cache fewer bytes";
  {
    const std::lock_guard lock(error_mutex_);
    last_error_ = error.Message();
  }
  ++disk_errors_;
  Pause(0);
}

DiskCacheCounts DiskCache::counts() const {
  DiskCacheCounts counts{.hits = hits_,
                         .hit_bytes = hit_bytes_,
                         .misses = misses_,
                         .kept = kept_,
                         .kept_bytes = kept_bytes_,
                         .refused = refused_,
                         .damaged = damaged_,
                         .removed = removed_,
                         .disk_errors = disk_errors_,
                         .last_error = {},
                         .ranges = table_.size(),
                         .range_bytes = table_.bytes(),
                         .memory_bytes = table_.memory_bytes()};
  const std::lock_guard lock(error_mutex_);
  counts.last_error = last_error_;
  return counts;
}

std::string DiskCache::Warning() const {
  if (folder_.writable() && disk_errors_ == 0) return {};
  if (!folder_.writable()) {
    return "The cache " + folder_.path() + " cannot be written to: nothing is added to it";
  }
  const DiskCacheCounts now = counts();
  return "The cache had " + std::to_string(now.disk_errors) +
         Plural(now.disk_errors, " disk error", " disk errors") +
         ", and samples are read from their store instead. The last one: " + now.last_error;
}

}  // namespace stoker
