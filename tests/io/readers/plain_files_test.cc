#include "io/readers/plain_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/memory/memory_budget.h"
#include "tests/testing/random.h"
#include "tests/testing/storage/temp_folder.h"

namespace stoker {
namespace {

using testing::Pattern;

// A file system whose descriptors keep the opened file, as the kernel's do, and which has only a
// few descriptors.
class FewDescriptors final : public FileCalls {
 public:
  using Content = std::shared_ptr<std::vector<uint8_t>>;

  void Write(const std::string& path, std::vector<uint8_t> bytes) {
    files[path] = std::make_shared<std::vector<uint8_t>>(std::move(bytes));
  }

  int Open(const char* path, int) const override {
    ++opens;
    const auto file = files.find(path);
    if (file == files.end()) return -ENOENT;
    if (open.size() >= most) return none_left;
    open[++last_descriptor] = file->second;
    return last_descriptor;
  }
  int Stat(int descriptor, struct stat* info) const override {
    ++stats;
    info->st_mode = S_IFREG | 0644;
    info->st_size = static_cast<off_t>(open.at(descriptor)->size());
    return 0;
  }
  int64_t Read(int descriptor, void* data, size_t wanted, uint64_t offset) const override {
    ++reads;
    if (!faults.empty()) {
      const int fault = faults.front();
      faults.pop_front();
      if (fault < 0) return fault;
      wanted = std::min<size_t>(wanted, static_cast<size_t>(fault));
    }
    const std::vector<uint8_t>& bytes = *open.at(descriptor);
    const size_t n = std::min(wanted, bytes.size() - std::min<size_t>(offset, bytes.size()));
    std::memcpy(data, bytes.data() + std::min<size_t>(offset, bytes.size()), n);
    return static_cast<int64_t>(n);
  }
  int SetBlocking(int) const override { return 0; }
  int Close(int descriptor) const override {
    EXPECT_EQ(open.erase(descriptor), 1u) << "not open";
    return 0;
  }

  std::map<std::string, Content> files;
  size_t most = 100;        // open descriptors
  int none_left = -EMFILE;  // what Open returns then
  mutable std::map<int, Content> open;
  mutable std::deque<int> faults;  // of the next reads: -errno, or the most bytes
  mutable int last_descriptor = 2;
  mutable int opens = 0;
  mutable int stats = 0;
  mutable int reads = 0;
};

class PlainFilesTest : public ::testing::Test {
 protected:
  PlainFilesTest() { request.buffer = GrowingBuffer(budget); }

  void Read(PlainFiles& files, const std::string& path, uint64_t offset, uint64_t length) {
    request.path = path;
    request.offset = offset;
    request.length = length;
    files.Read(request);
  }
  void ExpectRange(const std::vector<uint8_t>& bytes) {
    ASSERT_TRUE(request.status.ok()) << request.status.error().ToString();
    const auto from = bytes.begin() + static_cast<ptrdiff_t>(request.offset);
    EXPECT_EQ(std::vector<uint8_t>(request.buffer.data(), request.buffer.data() + request.size),
              std::vector<uint8_t>(from, from + static_cast<ptrdiff_t>(request.length)));
  }
  void ExpectError(Code code, std::optional<uint64_t> offset = {}) {
    ASSERT_FALSE(request.status.ok());
    EXPECT_EQ(request.size, 0u);
    EXPECT_EQ(request.status.error().code, code) << request.status.error().ToString();
    EXPECT_EQ(request.status.error().file, request.path);
    EXPECT_EQ(request.status.error().offset, offset);
  }

  MemoryBudget budget{64 << 20};
  FewDescriptors calls;
  ReadRequest request;
};

TEST_F(PlainFilesTest, OpensAFileOnceForAllItsRanges) {
  const std::vector<uint8_t> bytes = Pattern(1000);
  calls.Write("a", bytes);
  {
    PlainFiles files(4, calls);
    for (uint64_t offset = 0; offset < 1000; offset += 10) {
      Read(files, "a", offset, 10);
      ExpectRange(bytes);
    }
    EXPECT_EQ(calls.opens, 1);
    EXPECT_EQ(calls.stats, 1);
    EXPECT_EQ(calls.reads, 100);
    EXPECT_EQ(calls.open.size(), 1u);
  }
  EXPECT_EQ(calls.open.size(), 0u);
}

TEST_F(PlainFilesTest, ClosesFilesThatAreOneSample) {
  calls.Write("a", Pattern(1000));
  PlainFiles files(4, calls);
  Read(files, "a", 0, kUnknownLength);
  EXPECT_EQ(request.size, 1000u);
  EXPECT_EQ(calls.open.size(), 0u);
}

TEST_F(PlainFilesTest, KeepsNoMoreThanAllowed) {
  for (uint32_t most : {0u, 1u, 3u}) {
    PlainFiles files(most, calls);
    for (int i = 0; i < 50; ++i) {
      const std::string path = std::to_string(i * 7 % 10);
      calls.Write(path, Pattern(100, i));
      Read(files, path, 20, 30);
      EXPECT_LE(calls.open.size(), most);
    }
    EXPECT_EQ(calls.open.size(), most);
    EXPECT_EQ(files.CloseAll(), most > 0);
    EXPECT_EQ(calls.open.size(), 0u);
    EXPECT_FALSE(files.CloseAll());
  }
}

TEST_F(PlainFilesTest, AReplacedFileIsReadAsItWasUntilItIsClosed) {
  calls.Write("a", Pattern(100, 1));
  PlainFiles files(4, calls);
  Read(files, "a", 0, 10);
  calls.Write("a", Pattern(100, 2));
  Read(files, "a", 50, 50);
  ExpectRange(Pattern(100, 1));
  files.CloseAll();
  Read(files, "a", 50, 50);
  ExpectRange(Pattern(100, 2));
}

TEST_F(PlainFilesTest, ACutFileIsOpenedOnceMore) {
  const std::vector<uint8_t> bytes = Pattern(100, 2);
  calls.Write("a", Pattern(100, 1));
  PlainFiles files(4, calls);
  Read(files, "a", 0, 10);
  const FewDescriptors::Content old = calls.files["a"];
  calls.Write("a", bytes);
  old->resize(60);
  Read(files, "a", 50, 50);
  ExpectRange(bytes);
  EXPECT_EQ(calls.opens, 2);
  calls.files["a"]->resize(60);
  Read(files, "a", 50, 50);
  ExpectError(Code::kDataLoss, 50);
  EXPECT_EQ(calls.opens, 3);
  EXPECT_EQ(calls.open.size(), 0u);
  Read(files, "a", 50, 10);
  ExpectRange(bytes);
}

TEST_F(PlainFilesTest, ALongRangeIsCheckedFirst) {
  calls.Write("a", Pattern(100));
  PlainFiles files(4, calls);
  Read(files, "a", 0, 10);
  for (const uint64_t length : {kMaxUnseen + 1, uint64_t{1} << 40, kUnknownLength - 1}) {
    Read(files, "a", 10, length);
    ExpectError(Code::kDataLoss, 10);
    EXPECT_LE(request.buffer.capacity(), 2 * kFirstBufferBytes);
  }
}

TEST_F(PlainFilesTest, MakesRoomWhenThereIsNoDescriptor) {
  for (const int error_number : {-EMFILE, -ENFILE}) {
    calls.none_left = error_number;
    calls.most = 3;
    PlainFiles files(100, calls);
    for (int i = 0; i < 20; ++i) {
      const std::string path = std::to_string(i);
      calls.Write(path, Pattern(100, i));
      Read(files, path, 10, 10);
      ExpectRange(Pattern(100, i));
      Read(files, path, 0, kUnknownLength);
      EXPECT_EQ(request.size, 100u);
    }
    files.CloseAll();
    calls.most = 0;  // others have them all
    calls.opens = 0;
    Read(files, "1", 10, 10);
    ExpectError(SystemError(-error_number, "", "").code);
    EXPECT_EQ(calls.opens, 1) << "there was nothing to close";
  }
}

uint64_t HostileNumber(testing::Random& random) {
  return UINT64_MAX >> random.Between(0, 63) << random.Between(0, 10);
}

// Random ranges, some of which no file has, with short and interrupted reads.
TEST_F(PlainFilesTest, ReadsWhatReadPlainlyReads) {
  for (int i = 0; i < 6; ++i) calls.Write(std::to_string(i), Pattern(100 + 50 * i, i));
  ReadRequest plain;
  plain.buffer = GrowingBuffer(budget);
  PlainFiles files(3, calls);
  testing::Random random(1);
  for (int i = 0; i < 5'000; ++i) {
    const std::string path = std::to_string(random.Between(0, 6));
    const uint64_t offset = random.OneIn(50) ? HostileNumber(random) : random.Between(0, 400);
    const uint64_t length = random.OneIn(50) ? HostileNumber(random) : random.Between(0, 200);
    if (random.OneIn(10)) {
      calls.Write(path, Pattern(random.Between(100, 400), i));
      files.CloseAll();
    }
    plain.path = path;
    plain.offset = offset;
    plain.length = length;
    calls.faults.clear();
    ReadPlainly(plain, calls);
    for (int n = random.Between(0, 3); n > 0; --n) {
      calls.faults.push_back(random.OneIn(2) ? -EINTR : random.Between(1, 50));
    }
    if (random.OneIn(10)) calls.faults.assign({-EIO});
    const size_t kept = calls.open.size();
    const int opens = calls.opens;
    Read(files, path, offset, length);
    if (plain.status.ok() && !request.status.ok()) {
      // A file that was open is opened again after a fault; the first read of another one fails.
      EXPECT_EQ(request.status.error().code, SystemError(EIO, "", "").code);
      EXPECT_EQ(calls.opens, opens + 1);
      EXPECT_EQ(calls.open.size(), kept);
      continue;
    }
    ASSERT_EQ(request.status.ok(), plain.status.ok()) << i;
    ASSERT_EQ(request.size, plain.size);
    if (!plain.status.ok()) {
      EXPECT_EQ(request.status.error().ToString(), plain.status.error().ToString());
    } else if (plain.size > 0) {
      EXPECT_EQ(std::memcmp(request.buffer.data(), plain.buffer.data(), plain.size), 0);
    }
    EXPECT_LE(calls.open.size(), 3u);
  }
}

}  // namespace
}  // namespace stoker
