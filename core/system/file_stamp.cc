#include "core/system/file_stamp.h"

#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <vector>

#include "core/hash/hash.h"
#include "core/result/try.h"

namespace stoker {

namespace {

constexpr int64_t kMillisecond = 1'000'000, kSecond = 1000 * kMillisecond;

// File systems whose own clock sets the time of a change, for any program. Those that
// <linux/magic.h> may lack are named here.
constexpr uint32_t kBcachefs = 0xca451a4e, kCeph = 0x00c36400, kGpfs = 0x47504653,
                   kLustre = 0x0bd00bd0, kXfs = 0x58465342, kZfs = 0x2fc12fc1;
constexpr std::array kLocal = {uint32_t{EXT4_SUPER_MAGIC},
                               uint32_t{BTRFS_SUPER_MAGIC},
                               uint32_t{F2FS_SUPER_MAGIC},
                               kBcachefs,
                               kXfs,
                               kZfs};
// File systems that are never made from an image on this machine.
constexpr std::array kOthers = {uint32_t{NFS_SUPER_MAGIC}, uint32_t{TMPFS_MAGIC}, kCeph, kGpfs,
                                kLustre};

bool KeepsTimesOfChange(const struct statfs& info) {
  const auto type = static_cast<uint32_t>(info.f_type);
  if (std::ranges::find(kOthers, type) != kOthers.end()) return true;
  const bool is_writable = (static_cast<uint64_t>(info.f_flags) & ST_RDONLY) == 0;
  return is_writable && std::ranges::find(kLocal, type) != kLocal.end();
}

// Overflows only for times beyond any real clock's range.
int64_t Nanoseconds(const timespec& time) {
  return static_cast<int64_t>(static_cast<uint64_t>(time.tv_sec) * kSecond +
                              static_cast<uint64_t>(time.tv_nsec));
}

}  // namespace

Result<FileStamp> StampOf(int descriptor, const std::string& path) {
  struct stat info {};
  if (fstat(descriptor, &info) != 0) return SystemError(errno, "cannot stat", path);
  struct statfs system {};
  return StampFrom(info, fstatfs(descriptor, &system) == 0 && KeepsTimesOfChange(system));
}

FileStamp StampFrom(const struct stat& info, bool has_time_of_change) {
  return {.bytes = static_cast<uint64_t>(info.st_size),
          .modified_ns = Nanoseconds(info.st_mtim),
          .changed_ns = Nanoseconds(info.st_ctim),
          .inode = has_time_of_change ? info.st_ino : 0};
}

bool KeepsTimesOfChange(const char* path) {
  struct statfs info {};
  return statfs(path, &info) == 0 && KeepsTimesOfChange(info);
}

int64_t LastChangeNs(const struct stat& info) {
  return std::max(Nanoseconds(info.st_mtim), Nanoseconds(info.st_ctim));
}

int64_t NowNs() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

bool IsAhead(int64_t changed_ns, int64_t now_ns) { return changed_ns - now_ns > kSecond; }

int64_t RestNs(int64_t changed_ns, int64_t now_ns) {
  const int64_t tick = changed_ns % kSecond == 0 ? 2 * kSecond : 20 * kMillisecond;
  return std::max<int64_t>(0, changed_ns - now_ns + tick);
}

bool IsAtRest(const FileStamp& stamp, int64_t now_ns) {
  return RestNs(stamp.is_proof() ? stamp.changed_ns : stamp.modified_ns, now_ns) == 0;
}

Result<uint64_t> HashOfParts(
    uint64_t bytes, const std::function<Result<size_t>(uint64_t, std::span<uint8_t>)>& read) {
  constexpr uint64_t kParts = 5, kPart = 16 << 10;  // longer than the zeros that end an archive
  const bool is_small = bytes <= kParts * kPart;
  std::vector<uint8_t> part(is_small ? bytes : kPart);
  const uint64_t last = bytes - part.size();
  uint64_t hash = bytes;
  for (uint64_t i = is_small ? kParts - 1 : 0; i < kParts; ++i) {
    const uint64_t offset = i + 1 == kParts ? last : last / (kParts - 1) * i;
    ASSIGN_OR_RETURN(const size_t got, read(offset, part));
    hash = Hash64(std::span(part).first(got), hash);
  }
  return hash;
}

}  // namespace stoker
