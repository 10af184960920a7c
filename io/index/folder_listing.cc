#include "io/index/folder_listing.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <tuple>
#include <utility>

#include "core/result/try.h"
#include "core/system/file_stamp.h"
#include "core/system/start_thread.h"

namespace stoker {
namespace {

// Links can multiply paths without a loop: thirty folders, each with two links to the next one,
// give a billion paths.
constexpr int kMaxPathsToFolder = 1000;

// Closes a directory on every return.
class OpenFolder {
 public:
  OpenFolder(int parent, const char* path) {
    const int descriptor = openat(parent, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) return;
    stream_ = fdopendir(descriptor);
    if (stream_ == nullptr) close(descriptor);
  }
  OpenFolder(const OpenFolder&) = delete;
  OpenFolder& operator=(const OpenFolder&) = delete;
  ~OpenFolder() {
    if (stream_ != nullptr) closedir(stream_);
  }

  bool ok() const { return stream_ != nullptr; }
  int descriptor() const { return dirfd(stream_); }

  // nullptr at the end and on failure; errno is 0 at the end.
  const dirent* Next() {
    errno = 0;
    return readdir(stream_);
  }

 private:
  DIR* stream_ = nullptr;
};

Error FolderError(int error_number, const std::string& path) {
  Error error = SystemError(error_number, "cannot list this folder", path);
  switch (error_number) {
    case EACCES:
      error.advice = "Make it readable and searchable (chmod u+rx), or move it out of the dataset";
      break;
    case ELOOP:
      error.code = Code::kInvalidArgument;
      error.advice = "Its path goes through more symbolic links than the system follows";
      break;
    case ENAMETOOLONG:
      error.advice = "Files so deep cannot be opened by their path; name a folder further down";
      break;
    case EMFILE:
    case ENFILE:
      error.advice = "Raise the limit of open files (ulimit -n), or list with fewer threads";
      break;
    default:
      break;
  }
  return error;
}

std::string Join(const std::string& folder, std::string_view name) {
  if (folder.empty()) return std::string(name);
  std::string path = folder;
  if (path.back() != '/') path += '/';
  return path.append(name);
}

enum class EntryType { kFolder, kLinkedFolder, kFile, kOther };

EntryType TypeOfMode(mode_t mode, EntryType folder) {
  if (S_ISDIR(mode)) return folder;
  return S_ISREG(mode) ? EntryType::kFile : EntryType::kOther;
}

EntryType TypeOf(int folder, const dirent& entry) {
  switch (entry.d_type) {
    case DT_DIR:
      return EntryType::kFolder;
    case DT_REG:
      return EntryType::kFile;
    case DT_LNK:
    case DT_UNKNOWN:
      break;
    default:
      return EntryType::kOther;
  }
  struct stat info;
  // A link that cannot be resolved (dangling, in a loop, forbidden) counts as a file: opening it
  // will fail.
  if (fstatat(folder, entry.d_name, &info, 0) != 0) return EntryType::kFile;
  return TypeOfMode(info.st_mode, EntryType::kLinkedFolder);
}

// Sorts names that are in the directory's order.
NameList Sorted(NameList list) {
  std::vector<std::string_view> names(list.size());
  for (size_t i = 0; i < names.size(); ++i) names[i] = list[i];
  if (std::is_sorted(names.begin(), names.end())) return list;
  std::sort(names.begin(), names.end());
  NameList sorted;
  sorted.bytes.reserve(list.bytes.size());
  sorted.ends.reserve(names.size());
  for (std::string_view name : names) {
    sorted.bytes += name;
    sorted.ends.push_back(static_cast<uint32_t>(sorted.bytes.size()));
  }
  return sorted;
}

struct SubFolder {
  std::string name;
  bool linked = false;
};

struct Content {
  std::vector<SubFolder> folders;  // in the order of the directory
  NameList files;                  // sorted
  SkippedFiles skipped;
};

// `path` is relative to the root; `shown` is for messages.
Result<Content> Read(OpenFolder& folder, const std::string& path, const std::string& shown,
                     NameFilter filter) {
  Content content;
  const dirent* entry;
  while ((entry = folder.Next()) != nullptr) {
    const std::string_view name = entry->d_name;
    if (name.starts_with('.')) continue;
    const NameKind kind = filter(name);
    if (kind.kind == NameKind::kOther && entry->d_type == DT_REG) continue;
    const EntryType type = TypeOf(folder.descriptor(), *entry);
    if (type == EntryType::kFolder || type == EntryType::kLinkedFolder) {
      content.folders.push_back({std::string(name), type == EntryType::kLinkedFolder});
    } else if (type == EntryType::kFile && kind.kind == NameKind::kSkipped) {
      content.skipped.Add(kind.extension, Join(path, name));
    } else if (type == EntryType::kFile && kind.kind == NameKind::kListed) {
      if (content.files.bytes.size() + name.size() > UINT32_MAX) {
        return Error{Code::kResourceExhausted, "more than 4 GiB of names in one folder", shown};
      }
      if (shown.size() + 1 + name.size() >= PATH_MAX) return FolderError(ENAMETOOLONG, shown);
      content.files.bytes += name;
      content.files.ends.push_back(static_cast<uint32_t>(content.files.bytes.size()));
    }
  }
  if (errno != 0) return FolderError(errno, shown);
  content.files = Sorted(std::move(content.files));
  return content;
}

// A folder between the root and the one being listed.
struct Ancestor {
  dev_t device;
  ino_t inode;
  std::shared_ptr<const Ancestor> parent;
};

bool IsInside(const Ancestor* ancestor, const struct stat& folder) {
  for (; ancestor != nullptr; ancestor = ancestor->parent.get()) {
    if (ancestor->inode == folder.st_ino && ancestor->device == folder.st_dev) return true;
  }
  return false;
}

// Lists folders; holds those still to be listed, and the results so far.
class Walk {
 public:
  Walk(const std::string& root, int descriptor, NameFilter filter)
      : root_(root), descriptor_(descriptor), filter_(filter) {}

  Status Start(const std::vector<std::string>& tops) {
    struct stat info;
    if (fstat(descriptor_, &info) != 0) return FolderError(errno, root_);
    auto root = std::make_shared<const Ancestor>(Ancestor{info.st_dev, info.st_ino, nullptr});
    for (size_t i = tops.size(); i-- > 0;) {
      pending_.push_back({tops[i], static_cast<uint32_t>(i), false, root});
    }
    return {};
  }

  // The body of each thread: runs until nothing is pending and no thread can add to it.
  void Run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [this] { return !pending_.empty() || busy_ == 0 || error_; });
      if (pending_.empty() || error_) break;
      const Pending next = std::move(pending_.back());
      pending_.pop_back();
      ++busy_;
      lock.unlock();
      std::vector<Pending> below;
      ListedFolder found{.path = next.path, .top = next.top, .files = {}};
      SkippedFiles skipped;
      Result<bool> listed = List(next, found, skipped, below);
      lock.lock();
      --busy_;
      if (listed.ok() && *listed) found_.folders.push_back(std::move(found));
      if (!skipped.empty()) found_.skipped[next.top].Add(skipped);
      if (!listed.ok()) Keep(std::move(listed).error());
      for (Pending& folder : below) pending_.push_back(std::move(folder));
      wake_.notify_all();
    }
  }

  // Called after all threads have left Run.
  Result<ListedTree> TakeTree() {
    if (error_) return *std::move(error_);
    std::vector<ListedFolder>& folders = found_.folders;
    std::sort(folders.begin(), folders.end(), [](const ListedFolder& a, const ListedFolder& b) {
      return std::tie(a.top, a.path) < std::tie(b.top, b.path);
    });
    return std::move(found_);
  }

 private:
  struct Pending {
    std::string path;
    uint32_t top;
    bool linked;
    std::shared_ptr<const Ancestor> parent;
  };

  // Returns false if the folder closes a loop.
  Result<bool> List(const Pending& pending, ListedFolder& found, SkippedFiles& skipped,
                    std::vector<Pending>& below) {
    const std::string shown = Join(root_, pending.path);
    OpenFolder folder(descriptor_, pending.path.c_str());
    if (!folder.ok()) return FolderError(errno, shown);
    struct stat info;
    if (fstat(folder.descriptor(), &info) != 0) return FolderError(errno, shown);
    if (IsInside(pending.parent.get(), info)) return false;
    if (pending.linked) {
      TRY(CountPathTo(info, shown));
    }
    found.changed_ns = LastChangeNs(info);
    ASSIGN_OR_RETURN(Content content, Read(folder, pending.path, shown, filter_));
    found.files = std::move(content.files);
    skipped = std::move(content.skipped);
    if (content.folders.empty()) return true;
    auto self =
        std::make_shared<const Ancestor>(Ancestor{info.st_dev, info.st_ino, pending.parent});
    for (SubFolder& sub : content.folders) {
      below.push_back({Join(pending.path, sub.name), pending.top, sub.linked, self});
    }
    return true;
  }

  Status CountPathTo(const struct stat& folder, const std::string& shown) {
    const std::lock_guard lock(mutex_);
    if (++paths_to_[{folder.st_dev, folder.st_ino}] <= kMaxPathsToFolder) return {};
    return Error{.code = Code::kInvalidArgument,
                 .cause = "more than " + std::to_string(kMaxPathsToFolder) +
                          " symbolic links or paths through them lead to this folder",
                 .file = shown,
                 .advice = "Links that lead to each other multiply; remove some"};
  }

  void Keep(Error error) {
    if (!error_ || error.file < error_->file) error_ = std::move(error);
  }

  const std::string& root_;
  const int descriptor_;
  const NameFilter filter_;

  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Pending> pending_;  // taken from the back, so that it stays small in deep trees
  int busy_ = 0;
  std::map<std::pair<dev_t, ino_t>, int> paths_to_;  // folders that links lead to
  ListedTree found_;
  std::optional<Error> error_;
};

}  // namespace

SkippedFiles ListedTree::Skipped() const {
  SkippedFiles sum;
  for (const auto& [top, files] : skipped) sum.Add(files);
  return sum;
}

std::string WithSlash(std::string folder) {
  while (folder.ends_with('/')) folder.pop_back();
  return folder + '/';
}

std::optional<int64_t> ChangedNs(int descriptor, const char* path) {
  struct stat info;
  if (fstatat(descriptor, path, &info, AT_EMPTY_PATH) != 0) return std::nullopt;
  if (!S_ISDIR(info.st_mode)) return std::nullopt;
  return LastChangeNs(info);
}

Result<FolderLister> FolderLister::Open(std::string root, NameFilter filter) {
  if (root.find('\0') != std::string::npos) {
    return Error{Code::kInvalidArgument, "the path of the folder has a zero byte in it"};
  }
  const int descriptor = open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor >= 0) return FolderLister(std::move(root), descriptor, filter);
  const int error_number = errno;
  struct stat info;
  if (error_number == ENOTDIR && stat(root.c_str(), &info) == 0) {
    return Error{.code = Code::kInvalidArgument,
                 .cause = "this is not a folder",
                 .file = std::move(root),
                 .advice = "Name a folder"};
  }
  Error error = FolderError(error_number, root);
  if (error.code == Code::kNotFound && error.advice.empty()) error.advice = "Check the path";
  return error;
}

FolderLister::FolderLister(FolderLister&& other) noexcept
    : root_(std::move(other.root_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      filter_(other.filter_) {}

FolderLister::~FolderLister() {
  if (descriptor_ >= 0) close(descriptor_);
}

Result<ListedRoot> FolderLister::ListRoot() {
  OpenFolder folder(descriptor_, ".");
  if (!folder.ok()) return FolderError(errno, root_);
  const std::optional<int64_t> changed = ChangedNs(folder.descriptor(), "");
  if (!changed) return FolderError(errno, root_);
  ASSIGN_OR_RETURN(Content content, Read(folder, "", root_, filter_));
  ListedRoot listed{.folders = {},
                    .files = std::move(content.files),
                    .changed_ns = *changed,
                    .skipped = std::move(content.skipped)};
  for (SubFolder& sub : content.folders) listed.folders.push_back(std::move(sub.name));
  std::sort(listed.folders.begin(), listed.folders.end());
  return listed;
}

Result<ListedTree> FolderLister::ListBelow(const std::vector<std::string>& tops, int threads) {
  Walk walk(root_, descriptor_, filter_);
  TRY(walk.Start(tops));
  InParallel(threads, [&walk] { walk.Run(); });
  return walk.TakeTree();
}

}  // namespace stoker
