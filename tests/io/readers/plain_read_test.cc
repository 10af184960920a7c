#include "io/readers/plain_read.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "tests/testing/storage/temp_folder.h"

namespace stoker {
namespace {

using testing::Pattern;

// A system with one file, whose calls fail and fall short as the test says.
class FakeCalls final : public FileCalls {
 public:
  int Open(const char*, int flags) const override {
    EXPECT_TRUE(flags & O_CLOEXEC);
    EXPECT_TRUE(flags & O_NONBLOCK);
    ++opened;
    const int result = Next(open_results, 7);
    if (result < 0) --opened;
    return result;
  }
  int Stat(int descriptor, struct stat* info) const override {
    EXPECT_EQ(descriptor, 7);
    info->st_mode = mode;
    info->st_size = static_cast<off_t>(stat_size.value_or(bytes.size()));
    return Next(stat_results, 0);
  }
  int64_t Read(int descriptor, void* data, size_t wanted, uint64_t offset) const override {
    EXPECT_EQ(descriptor, 7);
    ++reads;
    const int64_t most = Next(read_results, static_cast<int64_t>(wanted));
    if (most < 0) return most;
    const size_t left = bytes.size() - std::min<size_t>(offset, bytes.size());
    const size_t n = std::min({wanted, left, static_cast<size_t>(most), at_most});
    std::memcpy(data, bytes.data() + offset, n);
    return static_cast<int64_t>(n);
  }
  int SetBlocking(int) const override {
    ++made_blocking;
    return set_blocking_result;
  }
  int Close(int descriptor) const override {
    EXPECT_EQ(descriptor, 7);
    --opened;
    return -EIO;  // ignored
  }

  std::vector<uint8_t> bytes = Pattern(1000);
  mode_t mode = S_IFREG | 0644;
  std::optional<size_t> stat_size;  // result of stat, if that is wrong
  size_t at_most = SIZE_MAX;        // bytes a read
  int set_blocking_result = 0;
  mutable std::deque<int> open_results, stat_results;
  mutable std::deque<int64_t> read_results;  // -errno, or the most bytes of that read
  mutable int opened = 0;
  mutable int reads = 0;
  mutable int made_blocking = 0;

 private:
  template <typename T>
  static T Next(std::deque<T>& results, T usual) {
    if (results.empty()) return usual;
    const T result = results.front();
    results.pop_front();
    return result;
  }
};

class PlainRead : public ::testing::Test {
 protected:
  PlainRead() {
    request.path = "a.jpg";
    request.buffer = GrowingBuffer(budget);
  }

  void Read() {
    ReadPlainly(request, calls);
    EXPECT_EQ(calls.opened, 0) << "a descriptor leaked";
  }
  void ExpectBytes(size_t offset, size_t size) {
    ASSERT_TRUE(request.status.ok()) << request.status.error().ToString();
    ASSERT_EQ(request.size, size);
    EXPECT_EQ(std::memcmp(request.buffer.data(), calls.bytes.data() + offset, size), 0);
  }
  void ExpectError(Code code, const std::string& words) {
    ASSERT_FALSE(request.status.ok());
    EXPECT_EQ(request.size, 0u);
    EXPECT_EQ(request.status.error().code, code);
    EXPECT_EQ(request.status.error().file, "a.jpg");
    EXPECT_NE(request.status.error().ToString().find(words), std::string::npos)
        << request.status.error().ToString();
  }

  MemoryBudget budget{64 << 20};
  FakeCalls calls;
  ReadRequest request;
};

TEST_F(PlainRead, ReadsAFileWithOneCall) {
  Read();
  ExpectBytes(0, 1000);
  EXPECT_EQ(calls.reads, 1);
}

TEST_F(PlainRead, ShortReadsContinueWhereTheyStopped) {
  for (size_t at_most : {1, 2, 7, 333, 999}) {
    calls.at_most = at_most;
    request.offset = 0;
    request.length = kUnknownLength;
    Read();
    ExpectBytes(0, 1000);
    request.offset = 17;
    request.length = 500;
    Read();
    ExpectBytes(17, 500);
  }
}

TEST_F(PlainRead, SurvivesAShortReadAtEveryOffset) {
  calls.bytes = Pattern(40);
  for (int64_t cut = 1; cut < 40; ++cut) {
    calls.read_results = {cut};
    Read();
    ExpectBytes(0, 40);
    EXPECT_TRUE(calls.read_results.empty());
  }
}

TEST_F(PlainRead, RetriesAfterEintr) {
  calls.open_results = {-EINTR, -EINTR, 7};
  calls.read_results = {-EINTR, 400, -EINTR, -EINTR, 1};
  Read();
  ExpectBytes(0, 1000);
  EXPECT_TRUE(calls.open_results.empty());
  EXPECT_TRUE(calls.read_results.empty());
}

TEST_F(PlainRead, WaitsWhenReadingWouldBlock) {
  calls.read_results = {-EAGAIN, 300};
  Read();
  ExpectBytes(0, 1000);
  EXPECT_EQ(calls.made_blocking, 1);
  calls.read_results = {-EAGAIN, -EAGAIN};  // still, although it may block: the retries end
  Read();
  ExpectError(Code::kUnavailable, "cannot read");
  calls.read_results = {-EAGAIN};
  calls.set_blocking_result = -EBADF;
  Read();
  ExpectError(Code::kUnavailable, "cannot read");
}

TEST_F(PlainRead, ErrorsSayWhatAndWhere) {
  calls.open_results = {-EMFILE};
  Read();
  ExpectError(Code::kResourceExhausted, "cannot open");
  calls.stat_results = {-EIO};
  Read();
  ExpectError(Code::kUnavailable, "cannot stat");
  request.offset = 100;
  calls.read_results = {50, -EIO};
  Read();
  ExpectError(Code::kUnavailable, "at byte 150");
  Read();  // the next read is not affected
  ExpectBytes(100, 900);
}

TEST_F(PlainRead, ErrorsNameNonRegularFiles) {
  for (auto [mode, words] : {std::pair{S_IFDIR, "a directory"},
                             {S_IFIFO, "a FIFO"},
                             {S_IFCHR, "a device"},
                             {S_IFBLK, "a device"},
                             {S_IFSOCK, "a socket"}}) {
    calls.mode = mode | 0644u;
    Read();
    ExpectError(Code::kInvalidArgument, words);
  }
  EXPECT_EQ(calls.reads, 0);
}

TEST_F(PlainRead, AShrunkFileGivesItsRemainingBytes) {
  calls.stat_size = 5000;
  Read();
  ExpectBytes(0, 1000);
  request.length = 4000;
  Read();
  ExpectError(Code::kDataLoss, "the file ends at byte 1000");
}

TEST_F(PlainRead, AFileThatGrewIsReadAtLeastToItsOldEnd) {
  calls.stat_size = 400;
  calls.at_most = 300;
  Read();
  ASSERT_TRUE(request.status.ok());
  ASSERT_GE(request.size, 400u);
  ExpectBytes(0, request.size);
}

TEST_F(PlainRead, AFileOfUnknownSizeIsReadToItsEnd) {
  calls.stat_size = 0;  // /proc
  calls.bytes = Pattern(3 * kFirstBufferBytes + 5);
  Read();
  ExpectBytes(0, calls.bytes.size());
  calls.bytes.clear();
  Read();
  ExpectBytes(0, 0);
}

TEST_F(PlainRead, RangesBeyondTheFileAllocateNoMemory) {
  const uint64_t huge = uint64_t{1} << 62;
  for (uint64_t length : {uint64_t{1001}, huge, kUnknownLength - 1}) {
    request.offset = 0;
    request.length = length;
    Read();
    ExpectError(Code::kDataLoss, "the file ends at byte 1000");
  }
  for (uint64_t offset : {uint64_t{1001}, huge, ~uint64_t{0}}) {
    for (uint64_t length : {uint64_t{0}, uint64_t{1}, huge, kUnknownLength - 1, kUnknownLength}) {
      request.offset = offset;
      request.length = length;
      Read();
      ExpectError(Code::kDataLoss, "at byte " + std::to_string(offset));
    }
  }
  EXPECT_EQ(budget.used(), 0u);
  EXPECT_EQ(calls.reads, 0);
}

TEST_F(PlainRead, AHugeSparseFileIsRefusedByTheBudget) {
  for (uint64_t size : {uint64_t{1} << 40, uint64_t{INT64_MAX}}) {
    calls.stat_size = size;
    Read();
    ExpectError(Code::kResourceExhausted, "budget");
  }
}

TEST(MakeRoom, GrowsByMoreThanAskedWhereTheBudgetAllows) {
  MemoryBudget budget(1 << 20);
  GrowingBuffer buffer(budget);
  ASSERT_TRUE(MakeRoom(buffer, 1).ok());
  EXPECT_GE(buffer.capacity(), kFirstBufferBytes);
  size_t capacity = buffer.capacity();
  int times = 0;
  for (uint64_t bytes = kFirstBufferBytes; bytes <= (900 << 10); bytes += 4096) {
    ASSERT_TRUE(MakeRoom(buffer, bytes).ok());
    EXPECT_GE(buffer.capacity(), bytes);
    EXPECT_LE(buffer.capacity(), bytes + bytes / 8 + 4096);
    times += std::exchange(capacity, buffer.capacity()) != buffer.capacity();
  }
  EXPECT_LE(times, 15);
  ASSERT_TRUE(MakeRoom(buffer, 1020 << 10).ok());  // an eighth more would be over the budget
  EXPECT_FALSE(MakeRoom(buffer, 2 << 20).ok());
}

}  // namespace
}  // namespace stoker
