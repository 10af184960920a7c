// Caches with damaged, foreign and missing files, and disks that fail or are full.
#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "io/cache/disk_cache.h"
#include "tests/io/cache/cached_ranges.h"
#include "tests/testing/process/child_process.h"
#include "tests/testing/random.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;
using testing::AllocatedBytes;
using testing::ExitCodeOfChild;
using testing::FilesOf;
using testing::Hit;
using testing::Keep;
using testing::kMiB;
using testing::Lookup;
using testing::ObjectOf;
using testing::OpenCache;
using testing::TempFolder;

constexpr int kRanges = 40;
constexpr size_t kLength = 1000;

void KeepAll(DiskCache& cache) {
  for (int i = 0; i < kRanges; ++i) Keep(cache, ObjectOf(i), 7, kLength);
}

// Counts the ranges that are read; none of them may be wrong.
int HitsOfAll(DiskCache& cache) {
  int hits = 0;
  for (int i = 0; i < kRanges; ++i) {
    const Hit hit = Lookup(cache, ObjectOf(i), 7, kLength);
    EXPECT_NE(hit, Hit::kWrong) << i;
    hits += hit == Hit::kRight ? 1 : 0;
  }
  return hits;
}

std::string BytesOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void Replace(const std::string& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << bytes;
}

class DamagedCache : public ::testing::Test {
 protected:
  DamagedCache() {
    KeepAll(*OpenCache(path, kMiB));
    data = FilesOf(path, ".data").front();
    index = FilesOf(path, ".index").front();
  }

  const TempFolder folder;
  const std::string path = folder.Path("cache");
  std::string data, index;
};

TEST_F(DamagedCache, ARangeWithAChangedByteIsMissedAndKeptAnew) {
  std::string bytes = BytesOf(data);
  bytes[5 * kLength + 17] ^= 1;
  Replace(data, bytes);
  const auto cache = OpenCache(path, kMiB);
  EXPECT_EQ(HitsOfAll(*cache), kRanges - 1);
  EXPECT_EQ(cache->counts().damaged, 1U);
  EXPECT_EQ(cache->counts().misses, 1U);
  KeepAll(*cache);
  EXPECT_EQ(cache->counts().kept, 1U);
  EXPECT_EQ(HitsOfAll(*cache), kRanges);
  EXPECT_EQ(HitsOfAll(*OpenCache(path, kMiB)), kRanges);
}

TEST_F(DamagedCache, DataThatEndEarlyAreMissed) {
  for (const size_t size : {39 * kLength + 999, 20 * kLength, size_t{1}}) {
    fs::resize_file(data, size);
    const auto cache = OpenCache(path, kMiB);
    const int whole = static_cast<int>(size / kLength);
    EXPECT_EQ(HitsOfAll(*cache), whole);
    EXPECT_EQ(cache->counts().damaged, static_cast<uint64_t>(kRanges - whole));
  }
  const auto cache = OpenCache(path, kMiB);
  EXPECT_EQ(HitsOfAll(*cache), 0);
  KeepAll(*cache);
  EXPECT_EQ(HitsOfAll(*cache), kRanges) << "the places are those of others now";
  EXPECT_EQ(HitsOfAll(*OpenCache(path, kMiB)), kRanges);
}

TEST_F(DamagedCache, AnIndexWithChangedBytesLosesTheseRangesOnly) {
  const std::string sound = BytesOf(index);
  testing::Random random(1);
  for (int i = 0; i < 200; ++i) {
    std::string bytes = sound;
    const int changes = random.Between(1, 3);
    for (int n = 0; n < changes; ++n) {
      bytes[static_cast<size_t>(random.Between(0, static_cast<int>(bytes.size()) - 1))] ^=
          static_cast<char>(random.Between(1, 255));
    }
    Replace(index, bytes);
    const auto cache = OpenCache(path, kMiB);
    const int hits = HitsOfAll(*cache);
    ASSERT_GE(hits, kRanges - changes);
    ASSERT_LE(hits, kRanges);
    ASSERT_EQ(cache->counts().damaged, 0U);
  }
}

TEST_F(DamagedCache, AnIndexThatEndsEarlyLosesItsEndAndGoesOn) {
  const std::string sound = BytesOf(index);
  ASSERT_EQ(sound.size(), kRanges * kCacheRecordBytes);
  for (size_t size = 0; size < sound.size(); size += 7) {
    Replace(index, sound.substr(0, size));
    const auto cache = OpenCache(path, kMiB);
    ASSERT_EQ(HitsOfAll(*cache), static_cast<int>(size / kCacheRecordBytes));
    if (size == 7) {
      KeepAll(*cache);  // a torn record is in the way
      ASSERT_EQ(HitsOfAll(*OpenCache(path, kMiB)), kRanges);
    }
  }
}

TEST_F(DamagedCache, AnIndexOfAnotherSegmentIsNotBelieved) {
  Keep(*OpenCache(folder.Path("other"), kMiB), ObjectOf(100), 0, 10);
  const auto name = SegmentName::OfData(fs::path(data).filename().string());
  ASSERT_TRUE(name);
  const SegmentName other{.number = name->number + 1, .capacity = name->capacity};
  fs::rename(data, folder.Path("cache/") + other.Data());
  fs::rename(index, folder.Path("cache/") + other.Index());
  EXPECT_EQ(HitsOfAll(*OpenCache(path, 4 * kMiB)), 0);
}

TEST_F(DamagedCache, LinksAndFilesThatOthersMayWriteToAreNotBelieved) {
  fs::rename(data, folder.Path("elsewhere"));
  fs::create_symlink(folder.Path("elsewhere"), data);
  {
    const auto cache = OpenCache(path, kMiB);
    EXPECT_EQ(HitsOfAll(*cache), 0);
    EXPECT_EQ(cache->counts().disk_errors, 1U);
    EXPECT_NE(cache->Warning().find("cannot open v1-"), std::string::npos) << cache->Warning();
  }
  fs::remove(data);
  fs::create_hard_link(folder.Path("elsewhere"), data);
  EXPECT_EQ(HitsOfAll(*OpenCache(path, kMiB)), 0);
  fs::rename(folder.Path("elsewhere"), path + "/unlinked");
  fs::remove(path + "/unlinked");
  fs::permissions(data, fs::perms::others_write, fs::perm_options::add);
  EXPECT_EQ(HitsOfAll(*OpenCache(path, kMiB)), 0);
  fs::permissions(data, fs::perms::others_write, fs::perm_options::remove);
  EXPECT_EQ(HitsOfAll(*OpenCache(path, kMiB)), kRanges);
}

TEST_F(DamagedCache, AFifoOrAFolderInItsPlaceIsNoFile) {
  fs::remove(data);
  ASSERT_EQ(mkfifo(data.c_str(), 0600), 0);
  fs::remove(index);
  fs::create_directory(index);
  EXPECT_EQ(HitsOfAll(*OpenCache(path, kMiB)), 0);
  fs::remove(path + "/v1.lock");
  ASSERT_EQ(mkfifo((path + "/v1.lock").c_str(), 0600), 0);
  EXPECT_FALSE(DiskCache::Open(path, kMiB).ok());
}

// The leftovers of a kill between the steps of adding and of removing a file.
TEST_F(DamagedCache, HalvesOfSegmentsAreRemovedWhenThereIsNoRoom) {
  const DiskCacheSettings at_once{.idle = std::chrono::seconds(0),
                                  .pause = std::chrono::milliseconds(0)};
  fs::remove(data);
  const std::string lonely = path + "/" + SegmentName{.number = 9, .capacity = kMiB / 2}.Data();
  Replace(lonely, "lonely");
  const auto cache = OpenCache(path, kMiB, at_once);
  for (uint64_t i = 0; cache->counts().refused == 0; ++i) Keep(*cache, ObjectOf(1), i, 100'000);
  EXPECT_FALSE(fs::exists(index));
  EXPECT_FALSE(fs::exists(lonely));
  EXPECT_GE(cache->counts().kept, 9U);
}

TEST_F(DamagedCache, ALockWithAnyContentIsALock) {
  for (const std::string& content : {std::string(), std::string("abc"), std::string(8, '\xFF'),
                                     std::string(8, '\x3F'), std::string(100, 'x')}) {
    Replace(path + "/v1.lock", content);
    const auto cache = OpenCache(path, 4 * kMiB);
    EXPECT_EQ(HitsOfAll(*cache), kRanges);
    Keep(*cache, ObjectOf(1000), content.size(), 10);
    EXPECT_EQ(Lookup(*cache, ObjectOf(1000), content.size(), 10), Hit::kRight);
  }
}

TEST_F(DamagedCache, AFolderThatIsRemovedWhileItIsUsedIsGivenUp) {
  const auto cache = OpenCache(path, kMiB);
  EXPECT_EQ(HitsOfAll(*cache), kRanges);
  fs::remove_all(path);
  Keep(*cache, ObjectOf(1), 1, 10);
  EXPECT_EQ(HitsOfAll(*cache), 0);
  EXPECT_EQ(folder.OpenFiles(), 2U) << "the folder and its lock: disk space is not held";
  EXPECT_EQ(cache->counts().disk_errors, 1U);
  EXPECT_EQ(cache->counts().ranges, 0U);
  EXPECT_NE(cache->Warning().find("was removed while it was in use"), std::string::npos);
  EXPECT_FALSE(fs::exists(path));
  Keep(*cache, ObjectOf(1), 1, 10);
  EXPECT_EQ(cache->counts().disk_errors, 1U);
}

TEST_F(DamagedCache, AFileThatIsRemovedWhileItIsUsedIsReplaced) {
  const auto cache = OpenCache(path, 4 * kMiB);
  EXPECT_EQ(HitsOfAll(*cache), kRanges);
  fs::remove(data);
  fs::remove(index);
  Keep(*cache, ObjectOf(1), 1, 10);
  EXPECT_EQ(Lookup(*OpenCache(path, 4 * kMiB), ObjectOf(1), 1, 10), Hit::kRight);
}

// Writes of more than `room` bytes in all fail as on a full disk; the last one that fits is torn.
struct FullDisk {
  int64_t room = 0;
  int error = ENOSPC;

  ssize_t Write(int descriptor, const void* bytes, size_t size, off_t offset) {
    if (room <= 0) {
      errno = error;
      return -1;
    }
    const size_t part = std::min(size, static_cast<size_t>(room));
    room -= static_cast<int64_t>(part);
    return pwrite(descriptor, bytes, part, offset);
  }
};

DiskCacheSettings On(FullDisk& disk) {
  return {.idle = std::chrono::seconds(0),
          .pause = std::chrono::milliseconds(0),
          .write = [&disk](int descriptor, const void* bytes, size_t size, off_t offset) {
            return disk.Write(descriptor, bytes, size, offset);
          }};
}

TEST(FullDisk, CostsTheRangesThatDoNotFitWhereverItEnds) {
  for (int64_t room = 0; room < 3 * 1032; room += 43) {
    const TempFolder folder;
    FullDisk disk{.room = room};
    const auto cache = OpenCache(folder.Path("cache"), kMiB, On(disk));
    KeepAll(*cache);
    const int hits = HitsOfAll(*cache);
    ASSERT_LE(hits, static_cast<int>(room / 1032)) << room;
    ASSERT_GE(hits, static_cast<int>(room / 1032) - 1) << room;
    ASSERT_EQ(cache->counts().disk_errors, static_cast<uint64_t>(kRanges - hits));
    ASSERT_EQ(HitsOfAll(*OpenCache(folder.Path("cache"), kMiB)), hits);
    // It gets room again.
    disk.room = kMiB;
    KeepAll(*cache);
    ASSERT_EQ(HitsOfAll(*cache), kRanges);
    ASSERT_EQ(HitsOfAll(*OpenCache(folder.Path("cache"), kMiB)), kRanges);
    const std::vector<std::string> data = FilesOf(folder.Path("cache"), ".data");
    ASSERT_EQ(data.size(), 1U);
    ASSERT_EQ(fs::file_size(data.front()), kRanges * kLength) << "failures leave no gaps";
  }
}

TEST(FullDisk, IsSaidOnceWithItsCauseAndLeftAloneForAWhile) {
  const TempFolder folder;
  FullDisk disk;
  DiskCacheSettings settings = On(disk);
  settings.pause = std::chrono::hours(1);
  const auto cache = OpenCache(folder.Path("cache"), kMiB, settings);
  KeepAll(*cache);
  EXPECT_EQ(cache->counts().disk_errors, 1U);
  EXPECT_EQ(cache->counts().refused, static_cast<uint64_t>(kRanges - 1));
  EXPECT_EQ(cache->Warning(),
            "The cache had 1 disk error, and samples are read from their store instead. The last "
            "one: " +
                folder.Path("cache") +
                ": cannot write to the cache: No space left on device. Free some space, or give "
                "the cache fewer bytes.");
}

TEST(FullDisk, FilesThatNobodyUsesMakeRoomThereToo) {
  const TempFolder folder;
  for (int i = 0; i < 3; ++i) {
    Keep(*OpenCache(folder.Path("cache"), 64 * kMiB), ObjectOf(1), static_cast<uint64_t>(i),
         900'000);
  }
  ASSERT_EQ(FilesOf(folder.Path("cache"), ".data").size(), 3U);
  FullDisk disk;
  const auto cache = OpenCache(folder.Path("cache"), 64 * kMiB, On(disk));
  Keep(*cache, ObjectOf(2), 0, 900'000);
  EXPECT_EQ(cache->counts().disk_errors, 1U);
  EXPECT_EQ(cache->counts().removed, 1U);
  disk.room = kMiB;
  Keep(*cache, ObjectOf(2), 0, 900'000);
  EXPECT_EQ(Lookup(*cache, ObjectOf(2), 0, 900'000), Hit::kRight);
}

constexpr int kSkip = 77;  // of a child process

TEST(FullDisk, OfTheSystem) {
  const TempFolder folder;
  const std::string path = folder.Path("disk");
  fs::create_directory(path);
  const int code = ExitCodeOfChild([&] {
    if (unshare(CLONE_NEWNS) != 0) return kSkip;
    if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return kSkip;
    if (mount("none", path.c_str(), "tmpfs", 0, "size=2m") != 0) return kSkip;
    const auto cache = OpenCache(path, 64 * kMiB, {.pause = std::chrono::milliseconds(0)});
    for (int i = 0; i < 40; ++i) Keep(*cache, ObjectOf(i), 0, 100'000);
    const DiskCacheCounts counts = cache->counts();
    if (counts.kept < 15 || counts.disk_errors + counts.kept != 40) return 1;
    for (int i = 0; i < 40; ++i) {
      if (Lookup(*cache, ObjectOf(i), 0, 100'000) == Hit::kWrong) return 2;
    }
    return cache->counts().hits == counts.kept ? 0 : 3;
  });
  if (code == kSkip) GTEST_SKIP() << "needs the right to mount";
  EXPECT_EQ(code, 0);
}

// Beyond the limit, the system's answer would be a signal that ends the process.
TEST(FullDisk, TheLimitOfAFilesSizeIsRespected) {
  const TempFolder folder;
  const int code = ExitCodeOfChild([&] {
    const rlimit limit{.rlim_cur = 300'000, .rlim_max = 300'000};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
    const auto cache =
        OpenCache(folder.Path("cache"), 4 * kMiB, {.pause = std::chrono::milliseconds(0)});
    for (int i = 0; i < 20; ++i) Keep(*cache, ObjectOf(i), 0, 100'000);
    Keep(*cache, ObjectOf(100), 0, 400'000);
    const DiskCacheCounts counts = cache->counts();
    return counts.kept == 20 && counts.refused == 1 && counts.disk_errors == 0 ? 0 : 2;
  });
  EXPECT_EQ(code, 0);
}

// A folder that cannot be listed is not an empty one, to which all bytes could be added.
TEST(FullDisk, WithoutAFreeDescriptorNothingIsAddedAndHitsStay) {
  const TempFolder folder;
  const std::string path = folder.Path("cache");
  const int code = ExitCodeOfChild([&] {
    const auto cache = OpenCache(path, 2 * kMiB, {.pause = std::chrono::milliseconds(0)});
    for (int i = 0; i < 9; ++i) Keep(*cache, ObjectOf(i), 0, 100'000);
    const rlimit none{.rlim_cur = 0, .rlim_max = 0};
    if (setrlimit(RLIMIT_NOFILE, &none) != 0) return 1;
    for (int i = 9; i < 30; ++i) Keep(*cache, ObjectOf(i), 0, 100'000);
    const DiskCacheCounts counts = cache->counts();
    if (counts.disk_errors + counts.kept != 30 || counts.kept > 10) return 2;
    for (int i = 0; i < 9; ++i) {
      if (Lookup(*cache, ObjectOf(i), 0, 100'000) != Hit::kRight) return 3;
    }
    return 0;
  });
  EXPECT_EQ(code, 0);
  EXPECT_LE(AllocatedBytes(path), 2 * kMiB);
}

constexpr uid_t kNobody = 65534;

TEST(ReadOnlyCache, IsReadAndSaysThatNothingIsAdded) {
  if (geteuid() != 0) GTEST_SKIP() << "needs to be root";
  const TempFolder folder;
  const std::string path = folder.Path("cache");
  KeepAll(*OpenCache(path, kMiB));
  // Root's files, which everybody may read.
  fs::permissions(path, fs::perms(0755));
  for (const auto& entry : fs::directory_iterator(path)) {
    fs::permissions(entry.path(), fs::perms(0644));
  }
  const int code = ExitCodeOfChild([&] {
    if (setgroups(0, nullptr) != 0 || setgid(kNobody) != 0 || setuid(kNobody) != 0) return kSkip;
    const auto cache = OpenCache(path, kMiB);
    Keep(*cache, ObjectOf(100), 0, 10);
    if (cache->Warning().find("nothing is added") == std::string::npos) return 1;
    if (HitsOfAll(*cache) != kRanges) return 2;
    if (cache->counts().refused != 1) return 3;
    // A new one cannot be made there.
    const auto other = DiskCache::Open(folder.Path("new"), kMiB);
    return !other.ok() && other.error().code == Code::kPermissionDenied ? 0 : 4;
  });
  if (code == kSkip) GTEST_SKIP() << "cannot become another user";
  EXPECT_EQ(code, 0);
}

TEST(ReadOnlyCache, AnotherUsersFilesAreNotBelieved) {
  if (geteuid() != 0) GTEST_SKIP() << "needs to be root";
  const TempFolder folder;
  const std::string path = folder.Path("cache");
  KeepAll(*OpenCache(path, kMiB));
  ASSERT_EQ(chown(FilesOf(path, ".data").front().c_str(), kNobody, kNobody), 0);
  EXPECT_EQ(HitsOfAll(*OpenCache(path, kMiB)), 0);
  ASSERT_EQ(chown((path + "/v1.lock").c_str(), kNobody, kNobody), 0);
  EXPECT_FALSE(DiskCache::Open(path, kMiB).ok());
}

TEST(ReadOnlyCache, AFileIsNoFolder) {
  const TempFolder folder;
  folder.Write("file", {1});
  for (const char* name : {"file", "file/below"}) {
    const auto cache = DiskCache::Open(folder.Path(name), kMiB);
    ASSERT_FALSE(cache.ok());
    EXPECT_EQ(cache.error().file, folder.Path(name));
    EXPECT_FALSE(cache.error().advice.empty());
  }
}

}  // namespace
}  // namespace stoker
