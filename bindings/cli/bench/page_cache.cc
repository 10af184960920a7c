#include "bindings/cli/bench/page_cache.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <optional>
#include <string>

namespace stoker {

Status DropFromPageCache(const SampleSource& source) {
  std::string path;
  std::optional<uint32_t> last;
  for (uint64_t id = 0; id < source.size(); ++id) {
    const uint32_t file = source.RangeOf(id).file;
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

uint64_t BytesFromStorage() {
  std::ifstream io("/proc/self/io");
  std::string key;
  uint64_t value = 0;
  while (io >> key >> value) {
    if (key == "read_bytes:") return value;
  }
  return 0;
}

}  // namespace stoker
