#include "core/system/file_kind.h"

#include <sys/stat.h>

#include <algorithm>
#include <string_view>

namespace stoker {

const char* FileKind(mode_t mode) {
  if (S_ISREG(mode)) return "a file";
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISLNK(mode)) return "a link";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  if (S_ISSOCK(mode)) return "a socket";
  return "something else";
}

std::optional<Error> LfsPointer(std::span<const uint8_t> first_bytes) {
  constexpr std::string_view kBegin = "version https://git-lfs.github.com/spec/";
  const bool is_one = first_bytes.size() >= kBegin.size() &&
                      std::equal(kBegin.begin(), kBegin.end(), first_bytes.begin());
  if (!is_one) return std::nullopt;
  return Error{.code = Code::kDataLoss,
               .cause = "a Git LFS pointer, not the file that it points to",
               .offset = 0,
               .advice = "Run `git lfs pull` in its repository"};
}

}  // namespace stoker
