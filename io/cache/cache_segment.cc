#include "io/cache/cache_segment.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <vector>

#include "core/hash/crc32c.h"

namespace stoker {

namespace {

// The records of extents that are being filled.
constexpr uint64_t kRecordsInFlight = 64;

// Bytes read at a time, so that the checksum finds them in the core's own cache.
constexpr size_t kPieceBytes = 256 << 10;

uint64_t WholeBlocks(uint64_t bytes) {
  return (bytes + kCacheBlockBytes - 1) / kCacheBlockBytes * kCacheBlockBytes;
}

int64_t SteadySeconds() {
  timespec now{};
  (void)clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return now.tv_sec;
}

}  // namespace

uint64_t SegmentBytesFor(uint64_t length) {
  return WholeBlocks(length) + WholeBlocks(kRecordsInFlight * kCacheRecordBytes);
}

uint64_t FileSizeLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    return ~uint64_t{0};
  }
  return limit.rlim_cur;
}

std::shared_ptr<CacheSegment> CacheSegment::Open(const CacheFolder& folder, const SegmentName& name,
                                                 int& failed) {
  auto segment = std::make_shared<CacheSegment>(name);
  const int flags = folder.writable() ? O_RDWR : O_RDONLY;
  failed = segment->data_.Open(folder.descriptor(), name.Data(), flags);
  if (failed == 0) failed = segment->index_.Open(folder.descriptor(), name.Index(), flags);
  if (failed != 0) return nullptr;
  // The next range is rarely adjacent, so the kernel should read only the requested bytes.
  (void)posix_fadvise(segment->data_.descriptor(), 0, 0, POSIX_FADV_RANDOM);
  return segment;
}

void CacheSegment::Prefetch(uint64_t position, uint64_t length) const {
  (void)posix_fadvise(data_.descriptor(), static_cast<off_t>(position), static_cast<off_t>(length),
                      POSIX_FADV_WILLNEED);
}

CacheSegment::Outcome CacheSegment::Read(uint64_t position, std::span<uint8_t> to, uint32_t check,
                                         uint32_t checksum) {
  if (!Use()) return Outcome::kGone;
  uint32_t sum = check;
  for (size_t done = 0; done < to.size();) {
    const std::span<uint8_t> piece = to.subspan(done, std::min(to.size() - done, kPieceBytes));
    const int64_t got = data_.Read(position + done, piece);
    if (got < 0) {
      errno = static_cast<int>(-got);
      return Outcome::kFailed;
    }
    if (static_cast<uint64_t>(got) < piece.size()) {
      const CacheFile::State state = data_.Stat();
      return state.removed || state.bytes == 0 ? Outcome::kGone : Outcome::kDamaged;
    }
    sum = Crc32c(piece, sum);
    done += piece.size();
  }
  if (sum != checksum) return Outcome::kDamaged;
  Touch();
  return Outcome::kRead;
}

bool CacheSegment::Use() {
  if (in_use_.load(std::memory_order_relaxed)) return true;
  // A process that removes the segment briefly holds an exclusive lock on it.
  if (flock(data_.descriptor(), LOCK_SH | LOCK_NB) != 0) return false;
  if (data_.Stat().removed) return false;
  in_use_.store(true, std::memory_order_relaxed);
  return true;
}

// The time of last use is the file's modification time.
void CacheSegment::Touch() {
  constexpr int64_t kSecondsBetween = 60;
  const int64_t now = SteadySeconds();
  const int64_t before = touched_.load(std::memory_order_relaxed);
  if (before != 0 && now - before < kSecondsBetween) return;
  touched_.store(now, std::memory_order_relaxed);
  (void)futimens(data_.descriptor(), nullptr);
  // Somebody may have removed the file by hand, to regain its disk space.
  if (data_.Stat().removed) in_use_.store(false, std::memory_order_relaxed);
}

void CacheSegment::Load(const std::function<void(const CacheRecord&)>& take) {
  constexpr uint64_t kRecordsAtATime = 2048;
  if (!index_.open()) return;
  const uint64_t end = index_.Stat().bytes / kCacheRecordBytes * kCacheRecordBytes;
  if (end == seen_) return;
  seen_ = end;
  std::vector<uint8_t> bytes;
  for (uint64_t next = loaded_; next < end;) {
    bytes.resize(std::min(end - next, kRecordsAtATime * kCacheRecordBytes));
    if (index_.Read(next, bytes) != static_cast<int64_t>(bytes.size())) return;
    for (size_t at = 0; at < bytes.size(); at += kCacheRecordBytes) {
      next += kCacheRecordBytes;
      const auto packed = std::span(bytes).subspan(at).first<kCacheRecordBytes>();
      const auto record = UnpackCacheRecord(packed, name_.number, name_.capacity);
      if (!record) continue;
      take(*record);
      loaded_ = next;
    }
  }
}

int CacheSegment::Reserve(uint64_t length, uint64_t& position) const {
  const CacheFile::State data = data_.Stat();
  if (data.removed) return EFBIG;
  const uint64_t start = data.bytes, records = index_.Stat().bytes;
  if (length > name_.capacity || start > name_.capacity - length) return EFBIG;
  const uint64_t ahead = records + kRecordsInFlight * kCacheRecordBytes;
  const uint64_t end = start + length;
  if (WholeBlocks(end) + WholeBlocks(ahead) > name_.capacity) return EFBIG;
  if (std::max(end, ahead) > FileSizeLimit()) return EFBIG;
  position = start;
  return data_.Resize(end);
}

void CacheSegment::GiveBack(uint64_t position, uint64_t length) const {
  if (data_.Stat().bytes == position + length) (void)data_.Resize(position);
}

int CacheSegment::Append(const WriteCall& write, const CacheFolder& folder,
                         const CacheRecord& record) {
  CacheFile again;
  if (!index_.open()) {
    if (const int failed = again.Open(folder.descriptor(), name_.Index(), O_RDWR)) return failed;
  }
  const CacheFile& index = index_.open() ? index_ : again;
  // A torn record at the end is overwritten.
  const uint64_t offset = index.Stat().bytes / kCacheRecordBytes * kCacheRecordBytes;
  const uint64_t end = offset + kCacheRecordBytes;
  if (WholeBlocks(data_.Stat().bytes) + WholeBlocks(end) > name_.capacity) return EFBIG;
  if (end > FileSizeLimit()) return EFBIG;
  return index.Write(write, offset, PackCacheRecord(record, name_.number));
}

}  // namespace stoker
