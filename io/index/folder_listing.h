// Lists a tree of folders with several threads.
#pragma once

#include <cstdint>
#include <ctime>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result/result.h"
#include "io/source/source.h"

namespace stoker {

// Names without their folder, sorted bytewise and concatenated.
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
  std::string path;  // relative to the root, without a slash at either end; "" is the root itself
  uint32_t top = 0;  // the index of the root's folder that contains this one (or is this one)
  NameList files = {};  // may be empty
  // LastChangeNs (core/system/file_stamp.h), taken before the folder was read: when an entry was
  // last added, removed or renamed, or a later time.
  int64_t changed_ns = 0;
};

// The root's entries.
struct ListedRoot {
  std::vector<std::string> folders;  // sorted bytewise
  NameList files;
  int64_t changed_ns = 0;  // as ListedFolder's
  SkippedFiles skipped;    // of files directly in the root
};

// All folders below some of the root's folders.
struct ListedTree {
  std::vector<ListedFolder> folders;
  std::map<uint32_t, SkippedFiles> skipped;  // by `top`, if there are any

  SkippedFiles Skipped() const;  // their sum
};

// The path of a folder, with one slash at its end.
std::string WithSlash(std::string folder);

// Returns ListedFolder::changed_ns of `path`, a folder or a link to one, relative to an open
// folder; "" means that folder itself. nullopt if it is not a folder or not accessible.
std::optional<int64_t> ChangedNs(int descriptor, const char* path);

// The kind of a file, decided by its name. Skipped files are counted by `extension`, which must be
// a literal.
struct NameKind {
  enum Kind { kOther, kListed, kSkipped } kind = kOther;
  std::string_view extension = {};
};

// Called from several threads.
using NameFilter = NameKind (*)(std::string_view name);

// Reads directories below one root. Hidden entries (leading dot), sockets, pipes and devices are
// ignored. Symbolic links are followed; a dangling one counts as a file, so that opening it reports
// the error. Only links, and entries whose type the file system does not report, are stat'ed.
//
// Holds one descriptor for the root and, while listing, one for each thread. One caller at a time.
class FolderLister {
 public:
  // NotFound; InvalidArgument if `root` is not a folder; PermissionDenied.
  static Result<FolderLister> Open(std::string root, NameFilter filter);
  FolderLister(FolderLister&& other) noexcept;
  FolderLister& operator=(FolderLister&&) = delete;
  ~FolderLister();

  Result<ListedRoot> ListRoot();

  // Lists all folders below these folders of the root, including empty ones, once for each path
  // that leads to them, sorted by (top, path). A folder is not entered again from inside itself: it
  // is compared by (device, inode) with its ancestors on the path. That cuts every loop, and lists
  // a folder twice if two links lead to it, as os.walk(followlinks=True) does.
  //
  // threads > 0. The error names the folder; of several errors it is the one with the smallest path
  // among those seen before all threads had stopped.
  Result<ListedTree> ListBelow(const std::vector<std::string>& tops, int threads);

  int descriptor() const { return descriptor_; }  // the root's, until destruction

 private:
  FolderLister(std::string root, int descriptor, NameFilter filter)
      : root_(std::move(root)), descriptor_(descriptor), filter_(filter) {}

  std::string root_;
  int descriptor_;
  NameFilter filter_;
};

}  // namespace stoker
