#include "io/cache/ram_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <cerrno>
#include <chrono>
#include <string_view>
#include <thread>
#include <vector>

#include "core/result/try.h"

namespace stoker {

namespace {

constexpr char kUsersName[] = "users.lock";

Error CannotUse(int error_number, const std::string& path) {
  Error error = SystemError(error_number, "cannot use this folder in memory", path);
  error.advice = "Use a cache in a folder on disk, \"dir:FOLDER:SIZE\"";
  return error;
}

// The names in a folder.
Result<std::vector<std::string>> NamesIn(int folder, const std::string& path) {
  const auto close_folder = [](DIR* open) { (void)closedir(open); };
  Descriptor again(openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!again.open()) return CannotUse(errno, path);
  const std::unique_ptr<DIR, decltype(close_folder)> open(fdopendir(*again), close_folder);
  if (open == nullptr) return CannotUse(errno, path);
  (void)again.Release();
  std::vector<std::string> names;
  while (const dirent* entry = readdir(open.get())) {  // NOLINT(concurrency-mt-unsafe)
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  return names;
}

}  // namespace

Result<std::unique_ptr<RamFolder>> RamFolder::Open(const std::string& root) {
  constexpr int kTries = 60'000;  // a minute: freeing a large cache takes a while
  std::unique_ptr<RamFolder> folder(new RamFolder(root + "/stoker-" + std::to_string(geteuid())));
  for (int i = 0; i < kTries; ++i) {
    bool again = false;
    TRY(folder->TryOpen(again));
    if (!again) return folder;
    std::this_thread::sleep_for(std::chrono::microseconds(i < 20 ? 20 : 1000));
  }
  return CannotUse(ETIMEDOUT, folder->path_);
}

// Sets `again` if another process removes the folder meanwhile.
Status RamFolder::TryOpen(bool& again) {
  again = true;
  constexpr mode_t kOwnerOnly = 0700;
  users_.Close();
  if (mkdir(path_.c_str(), kOwnerOnly) != 0 && errno != EEXIST) return CannotUse(errno, path_);
  folder_ = Descriptor(open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!folder_.open()) return errno == ENOENT ? Status() : CannotUse(errno, path_);
  TRY(CheckOwner());
  if (const int failed = users_.Open(*folder_, kUsersName, O_RDWR | O_CREAT)) {
    return failed == ENOENT ? Status() : CannotUse(failed, path_ + "/" + kUsersName);
  }
  if (flock(users_.descriptor(), LOCK_SH | LOCK_NB) != 0) {
    return errno == EWOULDBLOCK || errno == EINTR ? Status() : CannotUse(errno, path_);
  }
  // The file is removed before the folder, by a process that has locked it alone.
  again = users_.Stat().removed;
  return {};
}

// Anybody may make a folder of any name in /dev/shm.
Status RamFolder::CheckOwner() const {
  struct stat info {};
  if (fstat(*folder_, &info) != 0) return CannotUse(errno, path_);
  constexpr mode_t kOthers = S_IRWXG | S_IRWXO;
  if (info.st_uid == geteuid() && (info.st_mode & kOthers) == 0) return {};
  return Error{.code = Code::kPermissionDenied,
               .cause = info.st_uid != geteuid()
                            ? "this folder in memory belongs to another user"
                            : "others may read or change this folder in memory",
               .file = path_,
               .advice = "Remove it, or use a cache in a folder on disk, \"dir:FOLDER:SIZE\""};
}

RamFolder::~RamFolder() {
  if (!users_.open() || getpid() != process_) return;
  // If several processes leave at once, each gives up its shared lock first, so the last one gets
  // the exclusive lock.
  if (flock(users_.descriptor(), LOCK_EX | LOCK_NB) == 0 && !users_.Stat().removed) Remove();
}

// The lock's file goes last: until then no other process uses the folder.
void RamFolder::Remove() {
  const Result<std::vector<std::string>> names = NamesIn(*folder_, path_);
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    if (name == kUsersName) continue;
    // Forked children may have the file open, and would keep its memory.
    CacheFile file;
    if (file.Open(*folder_, name, O_RDWR) == 0) (void)file.Resize(0);
    (void)unlinkat(*folder_, name.c_str(), 0);
  }
  (void)unlinkat(*folder_, kUsersName, 0);
  (void)rmdir(path_.c_str());
}

Result<RamFolder::Room> RamFolder::FindRoom() const {
  constexpr uint64_t kStatBlock = 512;
  Room room;
  ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(*folder_, path_));
  for (const std::string& name : names) {
    struct stat info {};
    if (fstatat(*folder_, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
    room.taken += static_cast<uint64_t>(info.st_blocks) * kStatBlock;
  }
  struct statvfs system {};
  if (fstatvfs(*folder_, &system) != 0) return CannotUse(errno, path_);
  const bool limited = system.f_blocks != 0;  // a tmpfs without a size
  const uint64_t free = uint64_t{system.f_bavail} * system.f_frsize;
  room.most = limited ? room.taken + free : ~uint64_t{0};
  return room;
}

}  // namespace stoker
