#include "bindings/cli/bench/reads/page_cache.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "core/result/try.h"

namespace stoker {

namespace {

// Drops the files of one piece of each sample.
Status DropPieces(const SampleSource& source, size_t piece) {
  std::string path;
  std::optional<uint32_t> last;
  for (uint64_t id = 0; id < source.size(); ++id) {
    if (piece >= source.PiecesOf(id)) continue;
    const uint32_t file = source.RangeOfAny(id, piece).file;
    if (last == file) continue;  // samples of one file are consecutive
    source.PathOf(file, path);
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return SystemError(errno, "cannot open", path);
    if (!last) (void)syncfs(fd);
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
    last = file;
  }
  return {};
}

struct Pages {
  uint64_t all = 0;
  uint64_t cached = 0;
};

// Adds the pages of a range of an open file.
void CountPages(int fd, const ByteRange& range, Pages& pages) {
  struct stat info {};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) return;
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const auto size = static_cast<uint64_t>(info.st_size);
  const uint64_t offset = std::min(range.offset, size);
  const uint64_t first = offset / page * page;
  const uint64_t bytes = offset - first + std::min(range.length, size - offset);
  if (bytes == 0) return;
  void* mapped = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd, static_cast<off_t>(first));
  if (mapped == MAP_FAILED) return;
  std::vector<unsigned char> cached((bytes + page - 1) / page);
  if (mincore(mapped, bytes, cached.data()) == 0) {
    pages.all += cached.size();
    pages.cached += static_cast<uint64_t>(
        std::ranges::count_if(cached, [](unsigned char state) { return (state & 1) != 0; }));
  }
  munmap(mapped, bytes);
}

}  // namespace

Status DropFromPageCache(const SampleSource& source) {
  for (size_t piece = 0; piece < source.pieces(); ++piece) TRY(DropPieces(source, piece));
  return {};
}

std::optional<double> CachedShare(const SampleSource& source, uint64_t most) {
  Pages pages;
  std::string path;
  const uint64_t samples = std::min(source.size(), most);
  for (uint64_t i = 0; i < samples * source.pieces(); ++i) {
    const auto id =
        static_cast<uint64_t>(static_cast<double>(source.size()) *
                              (static_cast<double>(i % samples) / static_cast<double>(samples)));
    if (i / samples >= source.PiecesOf(id)) continue;
    const ByteRange range = source.RangeOfAny(id, i / samples);
    source.PathOf(range.file, path);
    // For files that this process may not write to, mincore reports every page as cached.
    const int fd = access(path.c_str(), W_OK) == 0
                       ? open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)
                       : -1;
    if (fd < 0) continue;
    CountPages(fd, range, pages);
    close(fd);
  }
  if (pages.all == 0) return std::nullopt;
  return static_cast<double>(pages.cached) / static_cast<double>(pages.all);
}

std::optional<uint64_t> BytesFromStorage() {
  std::ifstream io("/proc/self/io");
  std::string key;
  uint64_t value = 0;
  while (io >> key >> value) {
    if (key == "read_bytes:") return value;
  }
  return std::nullopt;
}

}  // namespace stoker
