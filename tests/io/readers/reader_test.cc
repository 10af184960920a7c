// Every reader behaves as reader.h documents for a single read.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tests/io/readers/reader_fixture.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;
using testing::Pattern;

class ReaderTest : public testing::ReaderFixture {};

TEST_P(ReaderTest, ReadsFilesOfAllSizes) {
  constexpr size_t kFirst = 256 << 10;  // what an empty buffer grows to
  ReadRequest kept = Request("");
  for (size_t size : {size_t{0}, size_t{1}, size_t{4095}, size_t{4096}, size_t{4097}, kFirst - 1,
                      kFirst, kFirst + 1, kFirst + 4096, size_t{3} << 20, size_t{100}}) {
    SCOPED_TRACE(size);
    const std::vector<uint8_t> bytes = Pattern(size, static_cast<uint32_t>(size));
    const std::string path = folder.Write("f", bytes);
    ReadRequest fresh = Request(path);
    Read(fresh);
    ExpectBytes(fresh, bytes);
    kept.path = path;
    Read(kept);
    ExpectBytes(kept, bytes);
    Read(kept);  // the buffer fits by now
    ExpectBytes(kept, bytes);
  }
}

TEST_P(ReaderTest, ReadsFilesAroundTheBuffersCapacity) {
  ReadRequest probe = Request("");
  ASSERT_TRUE(probe.buffer.Grow(5000).ok());
  const size_t capacity = probe.buffer.capacity();
  for (size_t size = capacity - 2; size <= capacity + 2; ++size) {
    const std::vector<uint8_t> bytes = Pattern(size);
    ReadRequest request = Request(folder.Write("f", bytes));
    ASSERT_TRUE(request.buffer.Grow(5000).ok());
    Read(request);
    ExpectBytes(request, bytes);
    EXPECT_EQ(request.buffer.capacity() == capacity, size <= capacity);
  }
}

TEST_P(ReaderTest, ReadsTheBytesAskedFor) {
  const std::vector<uint8_t> bytes = Pattern(300'000);
  const std::string path = folder.Write("f", bytes);
  for (uint64_t offset : {0, 1, 4095, 100'000, 299'999, 300'000}) {
    for (uint64_t length : {uint64_t{0}, uint64_t{1}, uint64_t{4097}, uint64_t{200'000},
                            bytes.size() - offset, kUnknownLength}) {
      if (length != kUnknownLength && offset + length > bytes.size()) continue;
      SCOPED_TRACE(::testing::Message() << offset << " " << length);
      const uint64_t end = length == kUnknownLength ? bytes.size() : offset + length;
      ReadRequest request = Request(path, offset, length);
      Read(request);
      ExpectBytes(request, {bytes.begin() + static_cast<ptrdiff_t>(offset),
                            bytes.begin() + static_cast<ptrdiff_t>(end)});
    }
  }
}

TEST_P(ReaderTest, BytesPastTheEndAreDataLoss) {
  const std::string path = folder.Write("f", Pattern(1000));
  for (auto [offset, length] :
       std::vector<std::pair<uint64_t, uint64_t>>{{0, 1001},
                                                  {999, 2},
                                                  {1000, 1},
                                                  {1001, 0},
                                                  {1001, kUnknownLength},
                                                  {5000, 1},
                                                  {0, uint64_t{1} << 30},
                                                  {0, uint64_t{1} << 62},
                                                  {uint64_t{1} << 63, 5},
                                                  {~uint64_t{0}, 1},
                                                  {~uint64_t{0} - 1, kUnknownLength - 1},
                                                  {10, kUnknownLength - 1}}) {
    SCOPED_TRACE(::testing::Message() << offset << " " << length);
    ReadRequest request = Request(path, offset, length);
    Read(request);
    ExpectError(request, Code::kDataLoss, "the file ends at byte 1000");
    EXPECT_EQ(request.status.error().offset, offset);
  }
}

TEST_P(ReaderTest, ErrorsSayWhyAFileCannotBeRead) {
  const std::string file = folder.Write("f", Pattern(10));
  fs::create_symlink(folder.Path("nowhere"), folder.Path("dangling"));
  fs::create_symlink(folder.Path("loop"), folder.Path("loop"));
  for (const std::string& path :
       {folder.Path("missing"), file + "/below", folder.Path("dangling"), std::string()}) {
    ReadRequest request = Request(path);
    Read(request);
    ExpectError(request, Code::kNotFound, "cannot open");
  }
  ReadRequest dangling = Request(folder.Path("dangling"));
  Read(dangling);
  EXPECT_NE(dangling.status.error().advice.find("symbolic link may be missing"), std::string::npos);
  ReadRequest loop = Request(folder.Path("loop"));
  Read(loop);
  ExpectError(loop, Code::kInvalidArgument, "symbolic links");
  ReadRequest name = Request(folder.Path(std::string(5000, 'x')));
  Read(name);
  ExpectError(name, Code::kInvalidArgument, "cannot open");
  ReadRequest request = Request(file);
  Read(request);
  ExpectBytes(request, Pattern(10));
}

TEST_P(ReaderTest, AnUnreadableFileIsPermissionDenied) {
  const std::string path = folder.Write("f", Pattern(10));
  chmod(path.c_str(), 0);
  const bool root = geteuid() == 0;
  if (root) setfsuid(65534);  // of this thread; root may read everything
  ReadRequest request = Request(path);
  Read(request);
  if (root) setfsuid(0);
  ExpectError(request, Code::kPermissionDenied, "cannot open");
  EXPECT_NE(request.status.error().advice.find("folders above it readable"), std::string::npos);
}

TEST_P(ReaderTest, FollowsSymbolicLinks) {
  const std::vector<uint8_t> bytes = Pattern(5000);
  fs::create_symlink(folder.Write("f", bytes), folder.Path("link"));
  ReadRequest request = Request(folder.Path("link"));
  Read(request);
  ExpectBytes(request, bytes);
}

TEST_P(ReaderTest, RefusesNonRegularFiles) {
  ASSERT_EQ(mkfifo(folder.Path("fifo").c_str(), 0644), 0);
  struct Case {
    std::string path;
    uint64_t length;
    std::string words;
  };
  for (const Case& c : std::vector<Case>{{folder.Path("."), kUnknownLength, "a directory"},
                                         {folder.Path("."), 10, "a directory"},
                                         {folder.Path("fifo"), kUnknownLength, "a FIFO"},
                                         {folder.Path("fifo"), 10, "a FIFO"},
                                         {"/dev/null", kUnknownLength, "a device"},
                                         {"/dev/null", 10, "a device"},
                                         {"/dev/zero", kUnknownLength, "a device"}}) {
    SCOPED_TRACE(c.path);
    ReadRequest request = Request(c.path, 0, c.length);
    Read(request);
    ExpectError(request, Code::kInvalidArgument, c.words);
    EXPECT_LT(request.buffer.capacity(), size_t{1} << 20);
  }
}

TEST_P(ReaderTest, ReusesBuffers) {
  const std::string small = folder.Write("small", Pattern(100));
  const std::string large = folder.Write("large", Pattern(3 << 20));
  ReadRequest request = Request(large);
  Read(request);
  const uint8_t* memory = request.buffer.data();
  const size_t capacity = request.buffer.capacity();
  for (const std::string& path : {small, large, small}) {
    request.path = path;
    Read(request);
    ExpectBytes(request, path == small ? Pattern(100) : Pattern(3 << 20));
    EXPECT_EQ(request.buffer.data(), memory);
    EXPECT_EQ(request.buffer.capacity(), capacity);
  }
}

TEST_P(ReaderTest, StaysInsideTheBudget) {
  const std::vector<uint8_t> bytes = Pattern(10'000);
  const std::string small = folder.Write("small", bytes);
  const std::string large = folder.Write("large", Pattern(1 << 20));
  MemoryBudget tight(64 << 10);  // not even a first buffer's worth
  for (uint64_t length : {kUnknownLength, uint64_t{10'000}}) {
    ReadRequest request = Request(small, 0, length);
    request.buffer = GrowingBuffer(tight);
    Read(request);
    ExpectBytes(request, bytes);
    request.path = large;
    request.length = length == kUnknownLength ? length : 1 << 20;
    Read(request);
    ExpectError(request, Code::kResourceExhausted, "budget");
    request.path = small;
    request.length = length;
    Read(request);
    ExpectBytes(request, bytes);
  }
  EXPECT_EQ(tight.used(), 0u);
  EXPECT_LE(tight.peak(), tight.limit());
  ReadRequest none;
  none.path = small;
  Read(none);
  ExpectError(none, Code::kResourceExhausted);
}

INSTANTIATE_TEST_SUITE_P(Kinds, ReaderTest, testing::kReaderKinds, testing::NameOf);

}  // namespace
}  // namespace stoker
