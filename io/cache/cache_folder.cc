#include "io/cache/cache_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <ctime>
#include <memory>
#include <system_error>
#include <thread>

#include "core/result/try.h"

namespace stoker {

namespace {

constexpr char kCacheLockName[] = "v1.lock";
constexpr std::string_view kSegmentStart = "v1-";
constexpr std::string_view kDataEnding = ".data", kIndexEnding = ".index";
constexpr uint64_t kMostNumbers = uint64_t{1} << 62;

std::string Hexadecimal(uint64_t number) {
  std::array<char, 16> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number, 16);
  return {digits.data(), end.ptr};
}

// Takes a number in the form that Hexadecimal writes off the front of `text`.
std::optional<uint64_t> TakeHexadecimal(std::string_view& text) {
  uint64_t number = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), number, 16);
  if (end.ec != std::errc()) return std::nullopt;
  const std::string_view digits = text.substr(0, static_cast<size_t>(end.ptr - text.data()));
  if (digits != Hexadecimal(number)) return std::nullopt;  // each number has one name
  text.remove_prefix(digits.size());
  return number;
}

std::string NameOf(const SegmentName& segment, std::string_view ending) {
  return std::string(kSegmentStart) + Hexadecimal(segment.number) + "-" +
         Hexadecimal(segment.capacity) + std::string(ending);
}

std::optional<SegmentName> ParseSegmentName(std::string_view file, std::string_view ending) {
  if (!file.starts_with(kSegmentStart) || !file.ends_with(ending)) return std::nullopt;
  file.remove_prefix(kSegmentStart.size());
  const std::optional<uint64_t> number = TakeHexadecimal(file);
  if (!number || *number > kMostNumbers || !file.starts_with("-")) return std::nullopt;
  file.remove_prefix(1);
  const std::optional<uint64_t> capacity = TakeHexadecimal(file);
  if (!capacity || *capacity > kMostNumbers || file != ending) return std::nullopt;
  return SegmentName{.number = *number, .capacity = *capacity};
}

Error CannotUseFolder(int error_number, const std::string& what, const std::string& path) {
  Error error = SystemError(error_number, what, path);
  error.advice = "Choose a folder on a local disk that you may write to";
  return error;
}

}  // namespace

bool MakeFolders(const std::string& path) {
  constexpr mode_t kOwnerOnly = 0700;
  for (size_t end = path.find('/', 1); end != std::string::npos; end = path.find('/', end + 1)) {
    (void)mkdir(path.substr(0, end).c_str(), kOwnerOnly);  // the last mkdir reports failures
  }
  return mkdir(path.c_str(), kOwnerOnly) == 0 || errno == EEXIST;
}

std::string SegmentName::Data() const { return NameOf(*this, kDataEnding); }
std::string SegmentName::Index() const { return NameOf(*this, kIndexEnding); }

std::optional<SegmentName> SegmentName::OfData(std::string_view file) {
  return ParseSegmentName(file, kDataEnding);
}

std::optional<SegmentName> SegmentName::OfIndex(std::string_view file) {
  return ParseSegmentName(file, kIndexEnding);
}

CacheLock::~CacheLock() {
  if (descriptor_ >= 0) (void)flock(descriptor_, LOCK_UN);
}

Result<CacheFolder> CacheFolder::Open(const std::string& path) {
  const std::string what = "cannot use this folder as a cache";
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
  Descriptor folder(open(path.c_str(), kFlags));
  if (!folder.open() && errno == ENOENT) {
    if (!MakeFolders(path)) return CannotUseFolder(errno, what, path);
    folder = Descriptor(open(path.c_str(), kFlags));
  }
  if (!folder.open()) return CannotUseFolder(errno, what, path);
  CacheFolder cache(path, std::move(folder));
  TRY(cache.OpenLock());
  return cache;
}

Status CacheFolder::OpenLock() {
  int failed = lock_.Open(*folder_, kCacheLockName, O_RDWR | O_CREAT);
  if (failed == EACCES || failed == EROFS || failed == EPERM) {
    writable_ = false;
    // Another user's file is not trusted, but a file that is only readable can be read.
    if (lock_.Open(*folder_, kCacheLockName, O_RDONLY) == 0) failed = 0;
  }
  if (failed != 0) {
    return CannotUseFolder(failed, "cannot use this file of a cache", path_ + "/" + kCacheLockName);
  }
  // Another process may hold the lock, even for long.
  const CacheLock tried(flock(lock_.descriptor(), LOCK_EX | LOCK_NB) == 0 ? lock_.descriptor()
                                                                          : -1);
  if (!tried.held() && errno != EWOULDBLOCK) {
    return CannotUseFolder(errno, "cannot lock this file of a cache", path_ + "/" + kCacheLockName);
  }
  return {};
}

std::optional<CacheLock> CacheFolder::Lock() const {
  constexpr int kTries = 1000;
  for (int i = 0; i < kTries; ++i) {
    if (flock(lock_.descriptor(), LOCK_EX | LOCK_NB) == 0) return CacheLock(lock_.descriptor());
    if (errno != EWOULDBLOCK && errno != EINTR) return std::nullopt;
    std::this_thread::sleep_for(std::chrono::microseconds(i < 20 ? 20 : 1000));
  }
  errno = ETIMEDOUT;
  return std::nullopt;
}

uint64_t CacheFolder::last_number() const {
  uint64_t number = 0;
  std::array<uint8_t, sizeof(number)> bytes{};
  if (lock_.Read(0, bytes) < static_cast<int64_t>(bytes.size())) return 0;
  std::memcpy(&number, bytes.data(), sizeof(number));
  return number < kMostNumbers ? number : 0;
}

int CacheFolder::List(std::vector<SegmentName>& segments,
                      std::vector<SegmentName>& leftovers) const {
  segments.clear();
  leftovers.clear();
  const auto close_folder = [](DIR* folder) { (void)closedir(folder); };
  Descriptor again(openat(*folder_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!again.open()) return errno;
  const std::unique_ptr<DIR, decltype(close_folder)> folder(fdopendir(*again), close_folder);
  if (folder == nullptr) return errno;
  (void)again.Release();
  errno = 0;
  while (const dirent* entry = readdir(folder.get())) {  // NOLINT(concurrency-mt-unsafe)
    if (const auto data = SegmentName::OfData(entry->d_name)) segments.push_back(*data);
    if (const auto index = SegmentName::OfIndex(entry->d_name)) leftovers.push_back(*index);
    errno = 0;
  }
  if (errno != 0) return errno;
  std::ranges::sort(segments, {}, &SegmentName::number);
  std::erase_if(leftovers, [&](const SegmentName& index) {
    return std::ranges::find(segments, index) != segments.end();
  });
  return 0;
}

int CacheFolder::Add(uint64_t capacity, SegmentName& name) const {
  std::vector<SegmentName> others, leftovers;
  if (const int failed = List(others, leftovers)) return failed;
  const uint64_t highest = others.empty() ? 0 : others.back().number;
  name = {.number = std::max(last_number(), highest) + 1, .capacity = capacity};
  // The data file is made last: a segment exists if it has one.
  CacheFile index, data;
  constexpr int kFlags = O_RDWR | O_CREAT | O_EXCL;
  int failed = index.Open(*folder_, name.Index(), kFlags);
  if (failed == 0) failed = data.Open(*folder_, name.Data(), kFlags);
  if (failed != 0) return failed;  // an index without data is a leftover
  std::array<uint8_t, sizeof(name.number)> bytes{};
  std::memcpy(bytes.data(), &name.number, sizeof(name.number));
  (void)lock_.Write(pwrite, 0, bytes);  // on failure, other processes find the segment later
  return 0;
}

int64_t CacheFolder::LastUse(const SegmentName& name) const {
  struct stat info {};
  const bool found = fstatat(*folder_, name.Data().c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0;
  return found ? info.st_mtim.tv_sec : 0;
}

bool CacheFolder::Remove(const SegmentName& name, int64_t idle) const {
  CacheFile data;
  if (data.Open(*folder_, name.Data(), O_RDWR) != 0) return false;
  if (idle > 0 && time(nullptr) - data.Stat().modified < idle) return false;
  if (flock(data.descriptor(), LOCK_EX | LOCK_NB) != 0) return false;
  // Otherwise processes that have the file open would keep its disk space. They find that it is too
  // short.
  (void)data.Resize(0);
  if (unlinkat(*folder_, name.Data().c_str(), 0) != 0) return false;
  RemoveLeftover(name);
  return true;
}

void CacheFolder::RemoveLeftover(const SegmentName& name) const {
  CacheFile index;
  if (index.Open(*folder_, name.Index(), O_RDWR) == 0) (void)index.Resize(0);
  (void)unlinkat(*folder_, name.Index().c_str(), 0);
}

}  // namespace stoker
