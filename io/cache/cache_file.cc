#include "io/cache/cache_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace stoker {

int CacheFile::Open(int folder, const std::string& name, int flags) {
  constexpr mode_t kOwnerOnly = 0600;
  // O_NONBLOCK: opening a FIFO would wait for a writer.
  file_ = Descriptor(openat(folder, name.c_str(),
                            flags | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW | O_NONBLOCK, kOwnerOnly));
  if (!file_.open()) return errno;
  struct stat info {};
  const int failed = fstat(*file_, &info) == 0 ? 0 : errno;
  const bool is_ours = info.st_uid == geteuid() || info.st_uid == 0;
  const bool others_write = (info.st_mode & (S_IWGRP | S_IWOTH)) != 0;
  const bool one_name = info.st_nlink == 1;  // else it may be a link to another file of ours
  if (failed == 0 && S_ISREG(info.st_mode) && one_name && is_ours && !others_write) return 0;
  file_.Close();
  if (failed == 0 && info.st_nlink == 0) return ENOENT;
  return failed != 0 ? failed : EPERM;
}

CacheFile::State CacheFile::Stat() const {
  struct stat info {};
  if (fstat(*file_, &info) != 0) return {.removed = true};
  return {.bytes = static_cast<uint64_t>(info.st_size),
          .modified = info.st_mtim.tv_sec,
          .removed = info.st_nlink == 0};
}

int64_t CacheFile::Read(uint64_t offset, std::span<uint8_t> to) const {
  size_t done = 0;
  while (done < to.size()) {
    const ssize_t n =
        pread(*file_, to.data() + done, to.size() - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return -errno;
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  return static_cast<int64_t>(done);
}

int CacheFile::Write(const WriteCall& write, uint64_t offset,
                     std::span<const uint8_t> bytes) const {
  while (!bytes.empty()) {
    const ssize_t n = write(*file_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n < 0 ? errno : ENOSPC;
    offset += static_cast<uint64_t>(n);
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  return 0;
}

int CacheFile::Resize(uint64_t bytes) const {
  int failed = 0;
  do {
    failed = ftruncate(*file_, static_cast<off_t>(bytes)) == 0 ? 0 : errno;
  } while (failed == EINTR);
  return failed;
}

}  // namespace stoker
