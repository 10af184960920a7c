// What lies in a tree of folders, listed by several threads.
#pragma once

#include <cstdint>
#include <ctime>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "io/sources/skipped_files.h"

namespace stoker {

// Names without their folder, sorted bytewise, end to end in one string.
struct NameList {
  std::string bytes;
  std::vector<uint32_t> ends;  // of each name, in `bytes`

  size_t size() const { return ends.size(); }
  std::string_view operator[](size_t i) const {
    const uint32_t begin = i == 0 ? 0 : ends[i - 1];
    return std::string_view(bytes).substr(begin, ends[i] - begin);
  }
};

struct ListedFolder {
  std::string path;     // from the root, without a slash at either end; "" is the root itself
  uint32_t top = 0;     // which of the root's folders it lies in, or is
  NameList files = {};  // may be none
  // When something was last added to it, removed or renamed: nanoseconds since 1970, as they were
  // before it was read.
  int64_t modified_ns = 0;
};

// The root and what is directly in it.
struct ListedRoot {
  std::vector<std::string> folders;  // sorted bytewise
  NameList files;
  int64_t modified_ns = 0;  // as ListedFolder's
  SkippedFiles skipped;     // directly in it
};

// Everything below some of the root's folders.
struct ListedTree {
  std::vector<ListedFolder> folders;
  std::map<uint32_t, SkippedFiles> skipped;  // by `top`, where there are any
};

int64_t Nanoseconds(const timespec& time);

// ListedFolder::modified_ns of `path`, a folder or a link to one, below an open folder; "": that
// one itself. None where it cannot be seen, or is something else.
std::optional<int64_t> ModifiedNs(int descriptor, const char* path);

// What a file is, by its name. Those that are skipped are counted by `extension`, which lives on.
struct NameKind {
  enum Kind { kOther, kListed, kSkipped } kind = kOther;
  std::string_view extension = {};
};

// Called from several threads.
using NameFilter = NameKind (*)(std::string_view name);

// Reads directories below one root. Hidden entries (leading dot) do not exist for it; neither do
// sockets, pipes and devices. Symbolic links are followed; one that leads nowhere counts as a file,
// so that whoever opens it hears of it. Only links, and entries whose type the file system does not
// tell, are stat'ed.
//
// Holds one descriptor for the root and, while it lists, one for each thread. One caller at a time.
class FolderLister {
 public:
  // NotFound; InvalidArgument when `root` is not a folder; PermissionDenied.
  static Result<FolderLister> Open(std::string root, NameFilter filter);
  FolderLister(FolderLister&& other) noexcept;
  FolderLister& operator=(FolderLister&&) = delete;
  ~FolderLister();

  Result<ListedRoot> ListRoot();

  // Everything below those folders of the root: each folder once for each path that leads to it,
  // also without files, sorted by (top, path). A folder is not entered again from inside itself: it
  // is compared by (device, inode) with all that its path came through. That cuts every loop, and
  // lists a folder that two links lead to twice, as os.walk(followlinks=True) does.
  //
  // threads > 0. The error names the folder; of several it is the one with the smallest path among
  // those seen before all threads had stopped.
  Result<ListedTree> ListBelow(const std::vector<std::string>& tops, int threads);

  int descriptor() const { return descriptor_; }  // the root's, for as long as this lives

 private:
  FolderLister(std::string root, int descriptor, NameFilter filter)
      : root_(std::move(root)), descriptor_(descriptor), filter_(filter) {}

  std::string root_;
  int descriptor_;
  NameFilter filter_;
};

}  // namespace stoker
