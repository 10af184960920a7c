// The ranges that a cache keeps, for whom, and how much of the disk they take.
#include "io/cache/disk_cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <set>
#include <tuple>

#include "tests/io/cache/cached_ranges.h"
#include "tests/io/readers/count_allocations.h"
#include "tests/testing/random.h"

namespace stoker {
namespace {

using testing::AllocatedBytes;
using testing::FilesOf;
using testing::Hit;
using testing::Keep;
using testing::kMiB;
using testing::Lookup;
using testing::ObjectOf;
using testing::OpenCache;
using testing::TempFolder;

// Settings without pauses; files that nobody uses make room at once.
const DiskCacheSettings kAtOnce{.idle = std::chrono::seconds(0),
                                .pause = std::chrono::milliseconds(0)};

// Makes files look as if nobody had used them for two hours.
void Age(const std::string& folder) {
  for (const std::string& file : FilesOf(folder, ".data")) {
    const timespec before{.tv_sec = time(nullptr) - 7200, .tv_nsec = 0};
    const std::array<timespec, 2> times{before, before};
    ASSERT_EQ(utimensat(AT_FDCWD, file.c_str(), times.data(), 0), 0);
  }
}

TEST(DiskCache, HasExactlyTheRangesThatWereKept) {
  const TempFolder folder;
  const auto cache = OpenCache(folder.Path("made/for/it"), kMiB);
  const CachedObject object = ObjectOf(1);
  EXPECT_EQ(Lookup(*cache, object, 100, 1000), Hit::kNo);
  Keep(*cache, object, 100, 1000);
  EXPECT_EQ(Lookup(*cache, object, 100, 1000), Hit::kRight);
  EXPECT_EQ(Lookup(*cache, object, 100, 999), Hit::kNo);
  EXPECT_EQ(Lookup(*cache, object, 101, 999), Hit::kNo);
  EXPECT_EQ(Lookup(*cache, ObjectOf(2), 100, 1000), Hit::kNo);
  EXPECT_EQ(Lookup(*cache, ObjectOf(1, "\"v2\""), 100, 1000), Hit::kNo);
  EXPECT_TRUE(cache->Read(object, 5, {}));  // nothing to read
  cache->Write(object, 5, {});
  Keep(*cache, object, 100, 1000);  // is there

  const DiskCacheCounts counts = cache->counts();
  EXPECT_EQ(counts.hits, 1U);
  EXPECT_EQ(counts.hit_bytes, 1000U);
  EXPECT_EQ(counts.misses, 5U);
  EXPECT_EQ(counts.kept, 1U);
  EXPECT_EQ(counts.kept_bytes, 1000U);
  EXPECT_EQ(counts.ranges, 1U);
  EXPECT_EQ(counts.refused + counts.damaged + counts.removed + counts.disk_errors, 0U);
  EXPECT_EQ(cache->Warning(), "");
}

TEST(DiskCache, PrefetchesWhatItHas) {
  const TempFolder folder;
  const auto cache = OpenCache(folder.Path("cache"), kMiB);
  EXPECT_FALSE(cache->Prefetch(ObjectOf(1), 0, 1000));
  Keep(*cache, ObjectOf(1), 0, 1000);
  EXPECT_TRUE(cache->Prefetch(ObjectOf(1), 0, 1000));
  EXPECT_FALSE(cache->Prefetch(ObjectOf(1), 0, 999));
  EXPECT_EQ(Lookup(*cache, ObjectOf(1), 0, 1000), Hit::kRight);
  EXPECT_EQ(cache->counts().misses, 2U);
}

TEST(DiskCache, PrefetchesWhatOthersHaveKept) {
  const TempFolder folder;
  const auto cache = OpenCache(folder.Path("cache"), kMiB);
  Keep(*OpenCache(folder.Path("cache"), kMiB), ObjectOf(1), 0, 1000);
  EXPECT_TRUE(cache->Prefetch(ObjectOf(1), 0, 1000));
}

TEST(DiskCache, IsForItsOwnerOnly) {
  const TempFolder folder;
  const auto cache = OpenCache(folder.Path("cache"), kMiB);
  Keep(*cache, ObjectOf(1), 0, 1000);
  struct stat info {};
  ASSERT_EQ(stat(folder.Path("cache").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0700U);
  for (const auto& entry : std::filesystem::directory_iterator(folder.Path("cache"))) {
    ASSERT_EQ(stat(entry.path().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777U, 0600U) << entry.path();
  }
}

// Compares with a set of the kept ranges: one cache that is closed and opened again, and a second
// one, like that of another process.
TEST(DiskCache, DoesWhatASetDoes) {
  const TempFolder folder;
  testing::Random random(1);
  std::array<std::shared_ptr<DiskCache>, 2> caches;
  for (auto& cache : caches) cache = OpenCache(folder.Path("cache"), 64 * kMiB);
  std::set<std::tuple<int, int, int>> twin;
  for (int i = 0; i < 6000; ++i) {
    DiskCache& cache = *caches[static_cast<size_t>(random.Between(0, 1))];
    const int number = random.Between(1, 5), offset = random.Between(0, 40) * 100;
    const int length = random.OneIn(100) ? random.Between(1, 2'000'000) : random.Between(1, 20);
    const CachedObject object = ObjectOf(number);
    const std::tuple<int, int, int> range{number, offset, length};
    if (random.OneIn(3)) {
      Keep(cache, object, static_cast<uint64_t>(offset), static_cast<size_t>(length));
      twin.insert(range);
    } else {
      const Hit hit =
          Lookup(cache, object, static_cast<uint64_t>(offset), static_cast<size_t>(length));
      ASSERT_EQ(hit, twin.contains(range) ? Hit::kRight : Hit::kNo) << i;
    }
    if (random.OneIn(500)) {
      auto& again = caches[static_cast<size_t>(random.Between(0, 1))];
      again = nullptr;
      again = OpenCache(folder.Path("cache"), 64 * kMiB);
      ASSERT_EQ(again->counts().ranges, twin.size());
    }
  }
  EXPECT_LE(AllocatedBytes(folder.Path("cache")), 64 * kMiB);
  for (const auto& cache : caches) {
    EXPECT_EQ(cache->counts().refused + cache->counts().damaged + cache->counts().disk_errors, 0U);
  }
}

TEST(DiskCache, TakesNoMoreOfTheDiskThanItMay) {
  for (const uint64_t bytes : {uint64_t{64} << 10, kMiB + 5, 5 * kMiB, 70 * kMiB}) {
    const TempFolder folder;
    const auto cache = OpenCache(folder.Path("cache"), bytes, kAtOnce);
    testing::Random random(static_cast<uint32_t>(bytes));
    int refused = 0;
    for (uint64_t offset = 0; refused < 20; offset += 100'000) {
      const uint64_t before = cache->counts().refused;
      Keep(*cache, ObjectOf(1), offset, static_cast<size_t>(random.Between(1, 100'000)));
      ASSERT_LE(AllocatedBytes(folder.Path("cache")), bytes);
      refused += static_cast<int>(cache->counts().refused - before);
    }
    const DiskCacheCounts counts = cache->counts();
    EXPECT_EQ(counts.removed, 0U) << "it is in use";
    // A rest is too short in each of the files.
    EXPECT_GE(counts.kept_bytes, bytes / 2) << bytes;
    if (bytes >= 5 * kMiB) {
      EXPECT_GE(counts.kept_bytes, bytes / 100 * 85) << bytes;
    }
    EXPECT_EQ(cache->Warning(), "") << "a full cache is no error";
  }
}

TEST(DiskCache, IsFilledByShortRangesWithinItsBound) {
  const TempFolder folder;
  const auto cache = OpenCache(folder.Path("cache"), kMiB, kAtOnce);
  for (uint64_t offset = 0; cache->counts().refused == 0; ++offset) {
    Keep(*cache, ObjectOf(1), offset, 10);
  }
  EXPECT_LE(AllocatedBytes(folder.Path("cache")), kMiB);
  EXPECT_GE(cache->counts().kept, kMiB / (10 + kCacheRecordBytes) * 9 / 10);
}

TEST(DiskCache, RangesLargerThanAFileAreKeptAndThoseLargerThanTheCacheAreNot) {
  const TempFolder folder;
  const auto cache = OpenCache(folder.Path("cache"), 20 * kMiB, kAtOnce);
  Keep(*cache, ObjectOf(1), 0, 21 * kMiB);
  Keep(*cache, ObjectOf(2), 0, 20 * kMiB);
  EXPECT_EQ(cache->counts().refused, 2U);
  Keep(*cache, ObjectOf(3), 0, 100);
  Keep(*cache, ObjectOf(4), 0, 15 * kMiB);
  Keep(*cache, ObjectOf(5), 0, 15 * kMiB);
  EXPECT_EQ(Lookup(*cache, ObjectOf(3), 0, 100), Hit::kRight);
  EXPECT_EQ(Lookup(*cache, ObjectOf(4), 0, 15 * kMiB), Hit::kRight);
  EXPECT_EQ(Lookup(*cache, ObjectOf(5), 0, 15 * kMiB), Hit::kNo);
  EXPECT_EQ(cache->counts().refused, 3U);
  EXPECT_LE(AllocatedBytes(folder.Path("cache")), 20 * kMiB);
}

TEST(DiskCache, IsTooSmall) {
  const TempFolder folder;
  const auto cache = DiskCache::Open(folder.Path("cache"), 1000);
  ASSERT_FALSE(cache.ok());
  EXPECT_EQ(cache.error().code, Code::kInvalidArgument);
  EXPECT_FALSE(std::filesystem::exists(folder.Path("cache")));
}

// Fills a cache of 4 MiB with ranges of an object.
void Fill(DiskCache& cache, const CachedObject& object) {
  for (uint64_t i = 0; i < 45; ++i) Keep(cache, object, i * 100'000, 100'000);
}

int HitsOf(DiskCache& cache, const CachedObject& object) {
  int hits = 0;
  for (uint64_t i = 0; i < 45; ++i) {
    const Hit hit = Lookup(cache, object, i * 100'000, 100'000);
    EXPECT_NE(hit, Hit::kWrong);
    hits += hit == Hit::kRight ? 1 : 0;
  }
  return hits;
}

TEST(DiskCache, FilesThatNobodyUsesMakeRoom) {
  const TempFolder folder;
  const std::string path = folder.Path("cache");
  Fill(*OpenCache(path, 4 * kMiB), ObjectOf(1));
  {  // used an hour ago at most
    const auto cache = OpenCache(path, 4 * kMiB);
    Keep(*cache, ObjectOf(2), 0, 900'000);
    EXPECT_EQ(cache->counts().refused, 1U);
  }
  Age(path);
  const auto old = OpenCache(path, 4 * kMiB);  // a process that has it open, but does not use it
  const auto cache = OpenCache(path, 4 * kMiB);
  Fill(*cache, ObjectOf(2));
  EXPECT_GE(cache->counts().removed, 3U);
  EXPECT_GE(HitsOf(*cache, ObjectOf(2)), 27);
  EXPECT_LE(HitsOf(*cache, ObjectOf(1)), 10) << "what is left is in the file to which it was added";
  EXPECT_EQ(HitsOf(*old, ObjectOf(1)), HitsOf(*cache, ObjectOf(1)));
  EXPECT_EQ(HitsOf(*old, ObjectOf(2)), HitsOf(*cache, ObjectOf(2)));
  EXPECT_EQ(old->counts().damaged, 0U) << "it is missing, not damaged";
  EXPECT_EQ(old->counts().disk_errors, 0U);
  EXPECT_LE(AllocatedBytes(path), 4 * kMiB);
  for (const auto& each : {cache, old})
    EXPECT_LE(each->counts().ranges, 45U) << "none is of a removed file";
}

TEST(DiskCache, FilesThatAProcessUsesStay) {
  const TempFolder folder;
  const std::string path = folder.Path("cache");
  Fill(*OpenCache(path, 4 * kMiB), ObjectOf(1));
  const auto reader = OpenCache(path, 4 * kMiB);
  const int before = HitsOf(*reader, ObjectOf(1));
  EXPECT_GE(before, 36);
  Age(path);
  const auto cache = OpenCache(path, 4 * kMiB, kAtOnce);
  Fill(*cache, ObjectOf(2));
  EXPECT_EQ(cache->counts().removed, 0U);
  EXPECT_EQ(HitsOf(*reader, ObjectOf(1)), before);
}

TEST(DiskCache, TheLeastRecentlyUsedFilesGoFirst) {
  const TempFolder folder;
  const std::string path = folder.Path("cache");
  Fill(*OpenCache(path, 4 * kMiB), ObjectOf(1));
  Age(path);
  // The first file is used again.
  EXPECT_EQ(Lookup(*OpenCache(path, 4 * kMiB), ObjectOf(1), 0, 100'000), Hit::kRight);
  const auto cache = OpenCache(path, 4 * kMiB, kAtOnce);
  Keep(*cache, ObjectOf(2), 0, 900'000);
  EXPECT_EQ(cache->counts().removed, 1U);
  EXPECT_EQ(Lookup(*cache, ObjectOf(1), 0, 100'000), Hit::kRight);
  EXPECT_EQ(Lookup(*cache, ObjectOf(1), 1'500'000, 100'000), Hit::kNo);
}

// Another job may have kept it a minute ago.
TEST(DiskCache, ASmallerBoundHoldsFromTheBeginningForWhatIsUnused) {
  const TempFolder folder;
  const std::string path = folder.Path("cache");
  Fill(*OpenCache(path, 4 * kMiB), ObjectOf(1));
  const int all = HitsOf(*OpenCache(path, 4 * kMiB), ObjectOf(1));
  EXPECT_EQ(HitsOf(*OpenCache(path, 2 * kMiB), ObjectOf(1)), all);
  Age(path);
  const auto cache = OpenCache(path, 2 * kMiB);
  EXPECT_LE(AllocatedBytes(path), 2 * kMiB);
  EXPECT_GT(HitsOf(*cache, ObjectOf(1)), 5);
}

TEST(DiskCache, OtherFilesOfTheFolderAreNotTouched) {
  const TempFolder folder;
  folder.Write("v1-1-1.data.old", {1, 2, 3});
  folder.Write("photograph.jpg", std::vector<uint8_t>(100'000));
  const auto cache = OpenCache(folder.Path(""), kMiB, kAtOnce);
  for (uint64_t i = 0; i < 100; ++i) Keep(*cache, ObjectOf(1), i, 100'000);
  EXPECT_TRUE(std::filesystem::exists(folder.Path("v1-1-1.data.old")));
  EXPECT_EQ(std::filesystem::file_size(folder.Path("photograph.jpg")), 100'000U);
}

TEST(DiskCache, AHitAllocatesNothing) {
  const TempFolder folder;
  const auto cache = OpenCache(folder.Path("cache"), kMiB);
  const CachedObject object = ObjectOf(1);
  Keep(*cache, object, 0, 100'000);
  std::vector<uint8_t> to(100'000);
  ASSERT_TRUE(cache->Read(object, 0, to));
  const uint64_t before = testing::AllocationsSoFar();
  bool hit = true;
  for (int i = 0; i < 100; ++i) hit = hit && cache->Read(object, 0, to);
  EXPECT_EQ(testing::AllocationsSoFar(), before);
  EXPECT_TRUE(hit);
}

TEST(DiskCache, FewFilesAreOpen) {
  const TempFolder folder;
  const std::string path = folder.Path("cache");
  const auto cache = OpenCache(path, 200 * kMiB);
  for (uint64_t i = 0; cache->counts().refused == 0; ++i) {
    Keep(*cache, ObjectOf(1), i, 1'000'000);
  }
  EXPECT_GT(FilesOf(path, ".data").size(), 50U);
  EXPECT_LE(folder.OpenFiles(), 70U);
}

}  // namespace
}  // namespace stoker
