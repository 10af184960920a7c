#include "core/system/output_file.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cinttypes>
#include <climits>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "core/result/try.h"
#include "core/system/descriptor.h"
#include "core/system/file_kind.h"

namespace stoker {

namespace {

constexpr mode_t kPermissions = 0777;

// The file that a path leads to.
struct Target {
  std::string path;
  std::optional<struct stat> info;  // nullopt: does not exist yet
  bool of_proc = false;             // /proc/self/fd/1 and the like, which need not have a name
  bool replaceable() const { return !of_proc && (!info || S_ISREG(info->st_mode)); }
};

std::string FolderOf(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path();
  return folder.empty() ? "." : folder;
}

}  // namespace

Error CannotWrite(int error_number, const std::string& path) {
  struct stat info {};
  const std::string folder = FolderOf(path);
  const bool missing = error_number == ENOENT || error_number == ENOTDIR;
  if (missing && (stat(folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode))) {
    return {.code = Code::kNotFound,
            .cause = "cannot write: its folder does not exist",
            .file = path,
            .advice = "Create it first, or name another file"};
  }
  Error error = SystemError(error_number, "cannot write", path);
  if (error_number == ENOSPC || error_number == EDQUOT) {
    error.advice = "Free some space, and run again";
  } else if (error.code == Code::kPermissionDenied) {
    error.advice = "Choose a folder that you may write to";
  }
  return error;
}

namespace {

// The kernel's rule for links in folders that everybody may write to (protected_symlinks), which
// following links by hand would bypass.
bool MayFollow(const std::string& path, const struct stat& link) {
  struct stat folder {};
  if (stat(FolderOf(path).c_str(), &folder) != 0) return false;
  const bool shared = (folder.st_mode & S_ISVTX) != 0 && (folder.st_mode & S_IWOTH) != 0;
  return !shared || link.st_uid == geteuid() || link.st_uid == folder.st_uid;
}

bool IsOfProc(int descriptor) {
  struct statfs info {};
  return fstatfs(descriptor, &info) == 0 && info.f_type == PROC_SUPER_MAGIC;
}

std::string ReadLink(int link) {
  std::array<char, PATH_MAX> text{};
  const ssize_t size = readlinkat(link, "", text.data(), text.size());
  return size < 0 ? std::string() : std::string(text.data(), static_cast<size_t>(size));
}

// Follows links by hand, because the target's folder is needed even if the target does not exist.
Result<Target> Follow(const std::string& given) {
  constexpr int kMaxLinks = 40;  // the kernel's limit
  std::string path = given;
  for (int i = 0; i < kMaxLinks; ++i) {
    const Descriptor at(open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (*at < 0 && errno == ENOENT) return Target{path, {}, false};
    struct stat info {};
    if (*at < 0 || fstat(*at, &info) != 0) return CannotWrite(errno, given);
    if (!S_ISLNK(info.st_mode)) return Target{path, info, false};
    if (IsOfProc(*at)) {
      if (stat(path.c_str(), &info) != 0) return CannotWrite(errno, given);
      return Target{path, info, true};
    }
    if (!MayFollow(path, info)) return CannotWrite(EACCES, given);
    const std::string next = ReadLink(*at);
    if (next.empty()) return CannotWrite(errno, given);
    path = std::filesystem::path(path).parent_path() / next;
  }
  return CannotWrite(ELOOP, given);
}

// Returns the file at a path of stoker's own, where links are not followed.
Result<Target> OwnFile(const std::string& path) {
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) return Target{path, {}, false};
    return CannotWrite(errno, path);
  }
  if (S_ISREG(info.st_mode)) return Target{path, info, false};
  return Error{.code = Code::kInvalidArgument,
               .cause = std::string("cannot write: ") + FileKind(info.st_mode) + " is in the way",
               .file = path,
               .advice = "Move it away"};
}

bool SameFile(const std::string& a, const char* b) {
  struct stat one {
  }, other{};
  return stat(a.c_str(), &one) == 0 && stat(b, &other) == 0 && one.st_dev == other.st_dev &&
         one.st_ino == other.st_ino;
}

// Returns the descriptor of this process that /dev/stdout, /dev/fd/N and the like refer to.
std::optional<int> OwnDescriptor(const Target& target) {
  if (!target.of_proc || !SameFile(FolderOf(target.path), "/proc/self/fd")) return std::nullopt;
  const std::string name = std::filesystem::path(target.path).filename();
  int number = -1;
  std::from_chars(name.data(), name.data() + name.size(), number);
  return number;
}

// Opens a target that is not a regular file. A descriptor of this process is duplicated, with its
// position: reopening a regular file through /dev/stdout would overwrite it from the start, and
// reopening another user's pipe would fail.
int OpenDirectly(const Target& target) {
  constexpr int kFlags = O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY;
  if (const std::optional<int> own = OwnDescriptor(target)) return fcntl(*own, F_DUPFD_CLOEXEC, 0);
  return open(target.path.c_str(), target.of_proc ? kFlags : kFlags | O_NOFOLLOW);
}

// Returns 0 if OpenDirectly and writing would succeed, otherwise the errno. Opens nothing: the
// reader of a FIFO would take closing it for the end of the file.
int WhyNotWritable(const Target& target) {
  if (const std::optional<int> own = OwnDescriptor(target)) {
    const int flags = fcntl(*own, F_GETFL);
    if (flags < 0) return errno;
    return (flags & O_ACCMODE) == O_RDONLY ? EBADF : 0;
  }
  return faccessat(AT_FDCWD, target.path.c_str(), W_OK, AT_EACCESS) == 0 ? 0 : errno;
}

// Whether this process has the rights of any file's owner.
bool ActsAsOwner() {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> sets{};
  if (syscall(SYS_capget, &header, sets.data()) != 0) return geteuid() == 0;
  return (sets[0].effective & (1U << CAP_FOWNER)) != 0;
}

// Whether `owner`'s file in `folder` may not be replaced by this process, as in /tmp.
bool IsStuck(const std::string& folder, uid_t owner) {
  struct stat info {};
  if (stat(folder.c_str(), &info) != 0 || (info.st_mode & S_ISVTX) == 0) return false;
  return owner != geteuid() && info.st_uid != geteuid() && !ActsAsOwner();
}

// Detects early what rename() would refuse at the end.
Status CheckReplaceable(const Target& target, const std::string& given) {
  if (!target.info) return {};
  struct statx info {};
  if (statx(AT_FDCWD, target.path.c_str(), AT_SYMLINK_NOFOLLOW, 0, &info) == 0) {
    if ((info.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0) {
      Error error = CannotWrite(EBUSY, given);
      error.advice = "It is a mount point: mount its folder, or name another file";
      return error;
    }
    const uint64_t fixed = STATX_ATTR_IMMUTABLE | STATX_ATTR_APPEND;
    if ((info.stx_attributes & fixed) != 0) return CannotWrite(EPERM, given);
  }
  return IsStuck(FolderOf(target.path), target.info->st_uid) ? CannotWrite(EPERM, given) : Status();
}

constexpr std::string_view kPrefix = "/.stoker-", kSuffix = ".part";
constexpr size_t kDigits = 16;

// Returns a name that cannot be guessed or be in use.
std::string RandomName(std::string folder) {
  uint64_t number = 0;
  if (getrandom(&number, sizeof(number), 0) < 0) number = static_cast<uint64_t>(getpid());
  std::array<char, kDigits + 1> hexadecimal{};
  std::snprintf(hexadecimal.data(), hexadecimal.size(), "%016" PRIx64, number);
  return folder.append(kPrefix).append(hexadecimal.data()).append(kSuffix);
}

// Calls `make` with names until one is free. Returns an empty name, with errno set, if none could
// be made.
template <typename Make>
std::string MakeNamed(const std::string& folder, const Make& make) {
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {
    std::string name = RandomName(folder);
    if (make(name.c_str())) return name;
    if (errno != EEXIST) break;
  }
  return {};
}

// Copies owner, group and mode of the replaced file as far as the system allows. If the group
// cannot be kept, our group gets the permissions of others.
void TakeOver(int descriptor, const struct stat& before) {
  constexpr auto kSameOwner = static_cast<uid_t>(-1);
  const bool group_kept = fchown(descriptor, before.st_uid, before.st_gid) == 0 ||
                          fchown(descriptor, kSameOwner, before.st_gid) == 0;
  const mode_t mode = before.st_mode & kPermissions;
  (void)fchmod(descriptor, group_kept ? mode : (mode & ~070U) | (mode & 07U) << 3);
}

// Calls `write_some(bytes, done)` until everything is written; returns 0, or the errno.
template <typename WriteSome>
int WriteAll(std::span<const uint8_t> bytes, const WriteSome& write_some) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t written = write_some(bytes.subspan(done), done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return written < 0 ? errno : ENOSPC;
    done += static_cast<size_t>(written);
  }
  return 0;
}

}  // namespace

Result<OutputFile> OutputFile::Open(const std::string& path, Origin origin, Temporary temporary) {
  ASSIGN_OR_RETURN(Target target, origin == Origin::kOwn ? OwnFile(path) : Follow(path));
  if (target.info && S_ISDIR(target.info->st_mode)) return CannotWrite(EISDIR, path);
  if (!target.replaceable()) {
    OutputFile file(path, "");
    file.descriptor_ = OpenDirectly(target);
    if (file.descriptor_ < 0) return CannotWrite(errno, path);
    return file;
  }
  if (std::filesystem::path(target.path).filename().empty()) return CannotWrite(ENOENT, path);
  TRY(CheckReplaceable(target, path));
  OutputFile file(path, target.path);
  const mode_t mode = target.info ? target.info->st_mode & kPermissions : 0666;
  file.descriptor_ = file.MakeTemporary(mode, temporary);
  if (file.descriptor_ < 0) return CannotWrite(errno, path);
  if (target.info) TakeOver(file.descriptor_, *target.info);
  return file;
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)),
      target_(std::move(other.target_)),
      temporary_(std::exchange(other.temporary_, {})),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) close(descriptor_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

int OutputFile::MakeTemporary(mode_t mode, Temporary temporary) {
  const std::string folder = FolderOf(target_);
  // The file gets its name through /proc.
  if (temporary == Temporary::kUnnamed && access("/proc/self/fd", X_OK) == 0) {
    const int made = open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);
    if (made >= 0) return made;
  }
  int made = -1;
  temporary_ = MakeNamed(folder, [&](const char* name) {
    made = open(name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    return made >= 0;
  });
  return made;
}

bool OutputFile::IsTemporaryName(std::string_view name) {
  const std::string_view prefix = kPrefix.substr(1);
  return name.starts_with(prefix) && name.ends_with(kSuffix) &&
         name.size() == prefix.size() + kDigits + kSuffix.size();
}

Status OutputFile::Write(std::span<const uint8_t> bytes) {
  const int error = WriteAll(bytes, [this](std::span<const uint8_t> rest, size_t) {
    return write(descriptor_, rest.data(), rest.size());
  });
  return error == 0 ? Status() : CannotWrite(error, path_);
}

Status OutputFile::Overwrite(uint64_t offset, std::span<const uint8_t> bytes) {
  const int error = WriteAll(bytes, [&](std::span<const uint8_t> rest, size_t done) {
    return pwrite(descriptor_, rest.data(), rest.size(), static_cast<off_t>(offset + done));
  });
  return error == 0 ? Status() : CannotWrite(error, path_);
}

// linkat() cannot replace a file, so the file gets a random name first and is then renamed.
Status OutputFile::GiveName() {
  const std::string self = "/proc/self/fd/" + std::to_string(descriptor_);
  temporary_ = MakeNamed(FolderOf(target_), [&](const char* name) {
    return linkat(AT_FDCWD, self.c_str(), AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0;
  });
  return temporary_.empty() ? CannotWrite(errno, path_) : Status();
}

Status OutputFile::Commit(Sync sync) {
  if (sync == Sync::kToDisk && !target_.empty() && fdatasync(descriptor_) != 0) {
    return CannotWrite(errno, path_);
  }
  if (!target_.empty() && temporary_.empty()) {
    if (Status status = GiveName(); !status.ok()) return status;
  }
  if (close(std::exchange(descriptor_, -1)) != 0) return CannotWrite(errno, path_);
  if (target_.empty()) return {};
  if (rename(temporary_.c_str(), target_.c_str()) != 0) return CannotWrite(errno, path_);
  temporary_.clear();
  return {};
}

Status WriteFile(const std::string& path, std::string_view text) {
  ASSIGN_OR_RETURN(OutputFile file, OutputFile::Open(path));
  Status status = file.Write({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  return status.ok() ? file.Commit(OutputFile::Sync::kToDisk) : std::move(status);
}

Status CheckCanWrite(const std::string& path) {
  ASSIGN_OR_RETURN(Target target, Follow(path));
  if (target.replaceable() || S_ISDIR(target.info->st_mode)) {
    Result<OutputFile> file = OutputFile::Open(path);
    return file.ok() ? Status() : std::move(file).error();
  }
  const int error_number = WhyNotWritable(target);
  return error_number == 0 ? Status() : CannotWrite(error_number, path);
}

}  // namespace stoker
