// Files that change while they are read, readers on other threads, and the cost of a read.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "core/memory/memory_budget.h"
#include "io/readers/reader.h"
#include "tests/io/readers/count_allocations.h"
#include "tests/io/readers/reader_fixture.h"
#include "tests/testing/storage/temp_folder.h"

namespace stoker {
namespace {

using testing::Pattern;
using testing::TempFolder;

class ReaderChangeTest : public ::testing::TestWithParam<ReaderKind> {
 protected:
  void SetUp() override {
    Result<std::unique_ptr<Reader>> made = MakeReader(GetParam(), kDepth);
    if (!made.ok()) {
      ASSERT_EQ(GetParam(), ReaderKind::kUring) << made.error().ToString();
      GTEST_SKIP() << made.error().ToString();
    }
    reader = *std::move(made);
    for (ReadRequest& request : requests) request.buffer = GrowingBuffer(budget);
  }

  // Reads `path` with all requests at once.
  void ReadAll(const std::string& path) {
    std::array<ReadRequest*, kDepth> all{};
    for (size_t i = 0; i < kDepth; ++i) {
      requests[i].path = path;
      all[i] = &requests[i];
    }
    ASSERT_EQ(reader->Submit(all), kDepth);
    for (size_t n = 0; n < kDepth;) {
      n += reader->Reap(all, true);
    }
  }

  static constexpr uint32_t kDepth = 16;
  TempFolder folder;
  MemoryBudget budget{256 << 20};
  std::array<ReadRequest, kDepth> requests;
  std::unique_ptr<Reader> reader;
};

// Each version has its own bytes and size: the result must be one of them, whole.
TEST_P(ReaderChangeTest, AFileThatIsReplacedIsReadWhole) {
  const auto size_of = [](uint8_t version) { return version * size_t{9001}; };  // to 1.1 MB
  constexpr uint8_t kVersions = 120;
  const std::string path = folder.Write("f", std::vector<uint8_t>(size_of(1), 1));
  std::atomic<bool> stop{false};
  std::thread replacer([&] {
    for (uint8_t v = 2; !stop; v = v % kVersions + 1) {
      const std::string next = folder.Write("next", std::vector<uint8_t>(size_of(v), v));
      std::filesystem::rename(next, path);
    }
  });
  for (int round = 0; round < 150; ++round) {
    ReadAll(path);
    for (const ReadRequest& r : requests) {
      ASSERT_TRUE(r.status.ok()) << r.status.error().ToString();
      const uint8_t version = r.buffer.data()[0];
      ASSERT_EQ(r.size, size_of(version));
      ASSERT_EQ(std::memcmp(r.buffer.data(), r.buffer.data() + 1, r.size - 1), 0);  // all alike
    }
  }
  stop = true;
  replacer.join();
}

TEST_P(ReaderChangeTest, AFileThatGrowsAndShrinksIsReadWithoutError) {
  constexpr size_t kMax = 2 << 20;
  const std::vector<uint8_t> bytes = Pattern(kMax);
  const std::string path = folder.Write("f", {bytes.begin(), bytes.begin() + 1000});
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    std::ofstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    for (uint32_t i = 0; !stop; ++i) {
      file.seekp(0);
      file.write(reinterpret_cast<const char*>(bytes.data()), (i * 77'777) % kMax);
      file.flush();
      (void)truncate(path.c_str(), 1000 + (i * 33'333) % 400'000);
    }
  });
  for (int round = 0; round < 150; ++round) {
    ReadAll(path);
    for (const ReadRequest& r : requests) {
      ASSERT_TRUE(r.status.ok()) << r.status.error().ToString();
      ASSERT_GE(r.size, 1000u);
      ASSERT_LE(r.size, kMax);
      ASSERT_EQ(std::memcmp(r.buffer.data(), bytes.data(), 1000), 0);  // that much never changes
    }
  }
  stop = true;
  writer.join();
}

TEST_P(ReaderChangeTest, AVanishedFileIsAnError) {
  const std::string path = folder.Write("f", Pattern(100));
  ReadAll(path);
  std::filesystem::remove(path);
  ReadAll(path);
  for (const ReadRequest& r : requests) {
    ASSERT_FALSE(r.status.ok());
    EXPECT_EQ(r.status.error().code, Code::kNotFound);
  }
}

TEST_P(ReaderChangeTest, AllocatesNothingWhenWarm) {
  const std::string path = folder.Write("f", Pattern(100'000));
  ReadAll(path);
  const uint64_t before = testing::AllocationsSoFar();
  for (int round = 0; round < 50; ++round) ReadAll(path);
  EXPECT_EQ(testing::AllocationsSoFar() - before, 0u);
  for (const ReadRequest& r : requests) EXPECT_EQ(r.size, 100'000u);
}

TEST_P(ReaderChangeTest, AllocatesNothingForRangesWhenWarm) {
  const std::string path = folder.Write("f", Pattern(100'000));
  for (uint32_t i = 0; i < kDepth; ++i) {
    requests[i].offset = 1000 * i;
    requests[i].length = 5000;
  }
  ReadAll(path);
  const uint64_t before = testing::AllocationsSoFar();
  for (int round = 0; round < 50; ++round) ReadAll(path);
  EXPECT_EQ(testing::AllocationsSoFar() - before, 0u);
  for (const ReadRequest& r : requests) EXPECT_EQ(r.size, 5000u);
}

// Returns how many read calls this process has made; the ring's reads are not among them.
uint64_t ReadCallsSoFar() {
  std::ifstream io("/proc/self/io");
  uint64_t calls = 0;
  for (std::string line; std::getline(io, line);) {
    if (line.starts_with("syscr: ")) calls = std::stoull(line.substr(7));
  }
  return calls;
}

TEST_P(ReaderChangeTest, OnlyPreadMakesACallForEachFile) {
  if (ReadCallsSoFar() == 0) GTEST_SKIP() << "this kernel does not count";
  const std::string path = folder.Write("f", Pattern(100'000));
  const std::string large = folder.Write("large", Pattern(1'000'000));
  ReadAll(large);
  const uint64_t before = ReadCallsSoFar();
  for (int round = 0; round < 50; ++round) ReadAll(round % 2 == 0 ? path : large);
  const uint64_t calls = ReadCallsSoFar() - before;
  if (GetParam() == ReaderKind::kPread) {
    EXPECT_GE(calls, 50 * kDepth);
  } else {
    EXPECT_LT(calls, 10u);  // those that the count itself makes
  }
}

// The contract asks for one thread. A ring refuses submissions of a thread that did not make it;
// the reads must complete all the same.
TEST_P(ReaderChangeTest, ReadsSubmittedOnAnotherThreadComplete) {
  const std::vector<uint8_t> bytes = Pattern(10'000);
  const std::string path = folder.Write("f", bytes);
  std::thread([&] { ReadAll(path); }).join();
  for (const ReadRequest& r : requests) {
    ASSERT_TRUE(r.status.ok()) << r.status.error().ToString();
    ASSERT_EQ(r.size, bytes.size());
    EXPECT_EQ(std::memcmp(r.buffer.data(), bytes.data(), bytes.size()), 0);
  }
  ReadAll(path);  // and its own thread still is
  for (const ReadRequest& r : requests) ASSERT_EQ(r.size, bytes.size());
}

TEST_P(ReaderChangeTest, AForkedChildMayDestroyTheReader) {
  const std::string path = folder.Write("f", Pattern(1 << 20));
  std::array<ReadRequest*, kDepth> all{};
  for (size_t i = 0; i < kDepth; ++i) {
    requests[i].path = path;
    all[i] = &requests[i];
  }
  ASSERT_EQ(reader->Submit(all), kDepth);
  const pid_t child = fork();
  if (child == 0) {
    reader.reset();
    _exit(0);
  }
  int state = -1;
  waitpid(child, &state, 0);
  EXPECT_EQ(state, 0);
  size_t n = 0;
  while (reader->in_flight() > 0) n += reader->Reap(all, true);
  EXPECT_EQ(n, kDepth);
  for (const ReadRequest& r : requests) EXPECT_EQ(r.size, size_t{1} << 20);
}

INSTANTIATE_TEST_SUITE_P(Kinds, ReaderChangeTest, testing::kReaderKinds, testing::NameOf);

}  // namespace
}  // namespace stoker
