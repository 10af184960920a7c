// Several threads and processes with one cache, some of which are killed.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "io/cache/disk_cache.h"
#include "tests/io/cache/cached_ranges.h"
#include "tests/testing/random.h"

namespace stoker {
namespace {

using testing::AllocatedBytes;
using testing::Hit;
using testing::Keep;
using testing::kMiB;
using testing::Lookup;
using testing::ObjectOf;
using testing::OpenCache;
using testing::TempFolder;

const DiskCacheSettings kNoPause{.idle = std::chrono::seconds(0),
                                 .pause = std::chrono::milliseconds(0)};

// Returns the range that a random number stands for; it is the same in all processes.
struct Drawn {
  CachedObject object;
  uint64_t offset = 0;
  size_t length = 0;
};

Drawn Draw(testing::Random& random, int round) {
  const int number = random.Between(1, 400);
  return {.object = ObjectOf(number, std::to_string(round)),
          .offset = static_cast<uint64_t>(number) * 1000,
          .length = static_cast<size_t>(number % 10 == 0 ? 150'000 : 500 + number)};
}

// Adds ranges until it is killed.
[[noreturn]] void WriteForever(const std::string& path, uint64_t bytes, uint32_t seed, int round) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const auto cache = OpenCache(path, bytes, kNoPause);
  testing::Random random(seed);
  while (true) {
    const Drawn drawn = Draw(random, round);
    if (Lookup(*cache, drawn.object, drawn.offset, drawn.length) == Hit::kWrong) _exit(1);
    Keep(*cache, drawn.object, drawn.offset, drawn.length);
  }
}

void Kill(pid_t child) {
  kill(child, SIGKILL);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status)) << "a writer has read wrong bytes: " << status;
}

// Each round has new versions, so that ranges come and go: four processes add them and remove those
// of the previous round, and are killed one after another, while this process checks what it finds.
TEST(CacheProcesses, KilledWritersLeaveNothingWrongAndTheBoundHolds) {
  const TempFolder folder;
  const std::string path = folder.Path("cache");
  constexpr uint64_t kBytes = 4 * kMiB;
  uint64_t hits = 0;
  testing::Random random(1);
  for (int round = 0; round < 12; ++round) {
    const auto cache = OpenCache(path, kBytes, kNoPause);
    std::vector<pid_t> writers;
    for (uint32_t i = 0; i < 4; ++i) {
      const pid_t child = fork();
      ASSERT_GE(child, 0);
      if (child == 0) WriteForever(path, kBytes, static_cast<uint32_t>(round) * 10 + i, round);
      writers.push_back(child);
    }
    for (const pid_t writer : writers) {
      // Only the processes' progress tells when the next one is killed.
      const uint64_t enough = cache->counts().hits + static_cast<uint64_t>(random.Between(1, 60));
      while (cache->counts().hits < enough) {
        const Drawn drawn = Draw(random, round);
        ASSERT_NE(Lookup(*cache, drawn.object, drawn.offset, drawn.length), Hit::kWrong);
        ASSERT_LE(AllocatedBytes(path), kBytes);
      }
      Kill(writer);
    }
    EXPECT_EQ(cache->counts().damaged, 0U);
    EXPECT_EQ(cache->counts().disk_errors, 0U) << cache->Warning();
    hits += cache->counts().hits;
  }
  EXPECT_GT(hits, 48U);
  EXPECT_LE(AllocatedBytes(path), kBytes);
  // It can still be written to.
  const auto cache = OpenCache(path, kBytes, kNoPause);
  Keep(*cache, ObjectOf(1000), 0, 1000);
  EXPECT_EQ(Lookup(*cache, ObjectOf(1000), 0, 1000), Hit::kRight);
}

TEST(CacheProcesses, OneThatIsKilledWithTheLockDoesNotKeepIt) {
  const TempFolder folder;
  const auto cache = OpenCache(folder.Path("cache"), kMiB);
  Keep(*cache, ObjectOf(2), 0, 10);
  std::array<int, 2> ready{};
  ASSERT_EQ(pipe(ready.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    const Result<CacheFolder> own = CacheFolder::Open(folder.Path("cache"));
    const std::optional<CacheLock> lock = own->Lock();
    const char done = lock ? 1 : 0;
    if (write(ready[1], &done, 1) != 1) _exit(1);
    pause();
    _exit(1);
  }
  char done = 0;
  ASSERT_EQ(read(ready[0], &done, 1), 1);
  ASSERT_EQ(done, 1);
  EXPECT_EQ(Lookup(*cache, ObjectOf(2), 0, 10), Hit::kRight) << "reading needs no lock";
  EXPECT_EQ(Lookup(*OpenCache(folder.Path("cache"), kMiB), ObjectOf(2), 0, 10), Hit::kRight);
  Keep(*cache, ObjectOf(1), 0, 10);  // waits in vain
  EXPECT_EQ(cache->counts().disk_errors, 1U);
  EXPECT_NE(cache->Warning().find("cannot lock the cache"), std::string::npos);
  Kill(child);
  const auto again = OpenCache(folder.Path("cache"), kMiB);
  Keep(*again, ObjectOf(1), 0, 10);
  EXPECT_EQ(Lookup(*again, ObjectOf(1), 0, 10), Hit::kRight);
  close(ready[0]);
  close(ready[1]);
}

TEST(CacheProcesses, AForkedChildAddsNothing) {
  const TempFolder folder;
  const auto cache = OpenCache(folder.Path("cache"), kMiB);
  Keep(*cache, ObjectOf(1), 0, 10);
  const pid_t child = fork();
  if (child == 0) {
    Keep(*cache, ObjectOf(2), 0, 10);
    _exit(Lookup(*cache, ObjectOf(1), 0, 10) == Hit::kRight ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(Lookup(*cache, ObjectOf(2), 0, 10), Hit::kNo);
  Keep(*cache, ObjectOf(3), 0, 10);
  EXPECT_EQ(Lookup(*cache, ObjectOf(3), 0, 10), Hit::kRight);
}

// Threads with two caches of one folder, like two processes: adding, reading, removing.
TEST(CacheThreads, ReadWhatOthersAddWhileFilesAreRemoved) {
  const TempFolder folder;
  const std::string path = folder.Path("cache");
  std::atomic<int> wrong{0}, hits{0};
  for (int round = 0; round < 6; ++round) {
    const std::array<std::shared_ptr<DiskCache>, 2> caches{OpenCache(path, 3 * kMiB, kNoPause),
                                                           OpenCache(path, 3 * kMiB, kNoPause)};
    std::vector<std::jthread> threads;
    for (uint32_t i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] {
        DiskCache& cache = *caches[i % 2];
        testing::Random random(static_cast<uint32_t>(round) * 10 + i);
        for (int n = 0; n < 400; ++n) {
          const Drawn drawn = Draw(random, round);
          const Hit hit = Lookup(cache, drawn.object, drawn.offset, drawn.length);
          wrong += hit == Hit::kWrong ? 1 : 0;
          hits += hit == Hit::kRight ? 1 : 0;
          if (hit == Hit::kNo) Keep(cache, drawn.object, drawn.offset, drawn.length);
          if (n % 100 == 0) (void)cache.counts();
        }
      });
    }
    threads.clear();
    for (const auto& cache : caches) EXPECT_EQ(cache->counts().damaged, 0U);
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(hits, 1000);
  EXPECT_LE(AllocatedBytes(path), 3 * kMiB);
}

}  // namespace
}  // namespace stoker
