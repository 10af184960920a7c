// Every reader keeps the files of ranges open, and no longer than reader.h says.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "tests/io/readers/reader_fixture.h"
#include "tests/testing/random.h"

namespace stoker {
namespace {

using testing::Pattern;

class ReaderRangeTest : public testing::ReaderFixture {
 protected:
  std::vector<uint8_t> Part(const std::vector<uint8_t>& bytes, size_t offset, size_t length) {
    const auto from = bytes.begin() + static_cast<ptrdiff_t>(offset);
    return {from, from + static_cast<ptrdiff_t>(length)};
  }
};

TEST_P(ReaderRangeTest, AFileIsOpenedOnceForAllItsRanges) {
  const std::vector<uint8_t> bytes = Pattern(10'000);
  const std::string path = folder.Write("f", bytes);
  ReadRequest request = Request(path, 0, 100);
  Read(request);
  EXPECT_EQ(folder.OpenFiles(), 1u);
  std::filesystem::remove(path);  // so that it could not be opened again
  for (size_t offset = 100; offset < 10'000; offset += 100) {
    request.offset = offset;
    Read(request);
    ExpectBytes(request, Part(bytes, offset, 100));
  }
  EXPECT_EQ(folder.OpenFiles(), 1u);
  reader->CloseFiles();
  EXPECT_EQ(folder.OpenFiles(), 0u);
  Read(request);
  ExpectError(request, Code::kNotFound);
}

TEST_P(ReaderRangeTest, CountsCallsAndFiles) {
  const std::string path = folder.Write("f", Pattern(10'000));
  ReadRequest range = Request(path, 0, 100), whole = Request(path);
  for (int i = 0; i < 10; ++i) Read(range);
  EXPECT_EQ(reader->counts().opens, 1u);
  const uint64_t calls = reader->counts().calls;
  if (GetParam() == ReaderKind::kPread) {
    EXPECT_EQ(calls, 2u + 10u);  // open, stat and the reads
  } else {
    EXPECT_GE(calls, 10u);  // it may have to wait, too
  }
  for (int i = 0; i < 10; ++i) Read(whole);
  EXPECT_EQ(reader->counts().opens, 11u);
  EXPECT_GT(reader->counts().calls, calls);
}

TEST_P(ReaderRangeTest, AFileThatIsOneSampleIsClosed) {
  ReadRequest request = Request(folder.Write("f", Pattern(100)));
  Read(request);
  EXPECT_EQ(folder.OpenFiles(), 0u);
}

TEST_P(ReaderRangeTest, TheDestructorClosesFiles) {
  ReadRequest request = Request(folder.Write("f", Pattern(100)), 10, 20);
  Read(request);
  reader.reset();
  // The kernel may close a ring's files a little later, on a thread of its own.
  for (int i = 0; i < 1000 && folder.OpenFiles() > 0; ++i) usleep(10'000);
  EXPECT_EQ(folder.OpenFiles(), 0u);
}

TEST_P(ReaderRangeTest, ACutFileIsDataLossAndIsOpenedAgain) {
  const std::vector<uint8_t> bytes = Pattern(10'000);
  const std::string path = folder.Write("f", bytes);
  ReadRequest request = Request(path, 6000, 4000);
  Read(request);
  ExpectBytes(request, Part(bytes, 6000, 4000));
  ASSERT_EQ(truncate(path.c_str(), 7000), 0);
  Read(request);
  ExpectError(request, Code::kDataLoss, "ends at byte 7000");
  EXPECT_EQ(request.status.error().offset, 6000u);
  EXPECT_EQ(folder.OpenFiles(), 0u);
  std::filesystem::remove(path);
  folder.Write("f", bytes);
  Read(request);
  ExpectBytes(request, Part(bytes, 6000, 4000));
}

TEST_P(ReaderRangeTest, AFileThatGivesNoMoreIsReadFromTheOneInItsPlace) {
  const std::string path = folder.Write("f", Pattern(1000, 1));
  ReadRequest request = Request(path, 500, 500);
  Read(request);
  std::filesystem::rename(path, folder.Path("old"));
  folder.Write("f", Pattern(1000, 2));
  Read(request);
  ExpectBytes(request, Part(Pattern(1000, 1), 500, 500));
  ASSERT_EQ(truncate(folder.Path("old").c_str(), 700), 0);
  Read(request);
  ExpectBytes(request, Part(Pattern(1000, 2), 500, 500));
}

// There are more files than are kept open, and more reads in flight than that.
TEST_P(ReaderRangeTest, ManyFilesInFewSlots) {
  std::vector<std::vector<uint8_t>> contents;
  for (uint32_t i = 0; i < 12; ++i) {
    contents.push_back(Pattern(50'000 + 1000 * i, i));
    folder.Write(std::to_string(i), contents.back());
  }
  for (const uint32_t files : {0u, 1u, 3u, 12u}) {
    Make(8, files);
    testing::Random random(files);
    std::vector<ReadRequest> requests;
    std::vector<ReadRequest*> free, done(8);
    for (int i = 0; i < 8; ++i) requests.push_back(Request(""));
    for (ReadRequest& r : requests) free.push_back(&r);
    constexpr int kReads = 1000;
    for (int started = 0, finished = 0; finished < kReads;) {
      std::vector<ReadRequest*> batch;
      for (; !free.empty() && started < kReads; ++started) {
        ReadRequest& r = *free.back();
        free.pop_back();
        const int file = random.Between(0, random.OneIn(2) ? 11 : 2);
        r.path = folder.Path(std::to_string(file));
        r.owner = &contents[file];
        r.offset = random.Between(0, 49'000);
        r.length = random.Between(1, 1000 + 1000 * file + (random.OneIn(50) ? 5000 : 0));
        batch.push_back(&r);
      }
      ASSERT_EQ(reader->Submit(batch), batch.size());
      if (random.OneIn(100)) reader->CloseFiles();
      const size_t n = reader->Reap(done, true);
      for (size_t i = 0; i < n; ++i, ++finished) {
        ReadRequest& r = *done[i];
        const auto& bytes = *static_cast<std::vector<uint8_t>*>(r.owner);
        if (r.offset + r.length <= bytes.size()) {
          ExpectBytes(r, Part(bytes, r.offset, r.length));
        } else {
          ExpectError(r, Code::kDataLoss);
        }
        free.push_back(&r);
      }
    }
    EXPECT_LE(folder.OpenFiles(), files);
    reader->CloseFiles();
    EXPECT_EQ(folder.OpenFiles(), 0u);
  }
}

// Each version has one value in all its bytes: a range comes from one of them.
TEST_P(ReaderRangeTest, RangesOfAFileThatIsReplacedAreWhole) {
  const std::string path = folder.Write("f", std::vector<uint8_t>(200'000, 1));
  std::atomic<bool> stop{false};
  std::thread replacer([&] {
    for (uint8_t v = 2; !stop; ++v) {
      const std::string next = folder.Write("next", std::vector<uint8_t>(200'000, v));
      std::filesystem::rename(next, path);
    }
  });
  std::vector<ReadRequest> requests;
  std::vector<ReadRequest*> all, done(8);
  for (int i = 0; i < 8; ++i) requests.push_back(Request(path, 25'000 * i, 25'000));
  for (ReadRequest& r : requests) all.push_back(&r);
  for (int round = 0; round < 200; ++round) {
    ASSERT_EQ(reader->Submit(all), 8u);
    if (round % 3 == 0) reader->CloseFiles();  // while they are read
    for (size_t n = 0; n < 8;) n += reader->Reap(done, true);
    for (const ReadRequest& r : requests) {
      ASSERT_TRUE(r.status.ok()) << r.status.error().ToString();
      ASSERT_EQ(r.size, 25'000u);
      ASSERT_EQ(std::memcmp(r.buffer.data(), r.buffer.data() + 1, r.size - 1), 0);
    }
  }
  stop = true;
  replacer.join();
  reader->CloseFiles();
  EXPECT_EQ(folder.OpenFiles(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Kinds, ReaderRangeTest, testing::kReaderKinds, testing::NameOf);

}  // namespace
}  // namespace stoker
