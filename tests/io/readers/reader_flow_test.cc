// Every reader behaves as reader.h documents for many reads at a time, waiting and ending.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "tests/io/readers/reader_fixture.h"

namespace stoker {
namespace {

using testing::Pattern;

class ReaderFlowTest : public testing::ReaderFixture {};

// The FIFO has a writer that writes nothing, and signals interrupt every wait.
TEST_P(ReaderFlowTest, DoesNotWaitForAFifo) {
  ASSERT_EQ(mkfifo(folder.Path("fifo").c_str(), 0644), 0);
  std::fstream writer(folder.Path("fifo"));  // reading and writing, so that opening does not wait
  struct sigaction action {
  }, before{};
  action.sa_handler = [](int) {};  // without SA_RESTART
  sigaction(SIGALRM, &action, &before);
  const itimerval often{{0, 10'000}, {0, 10'000}};
  setitimer(ITIMER_REAL, &often, nullptr);
  ReadRequest request = Request(folder.Path("fifo"));
  Read(request);
  const itimerval never{};
  setitimer(ITIMER_REAL, &never, nullptr);
  sigaction(SIGALRM, &before, nullptr);
  ExpectError(request, Code::kInvalidArgument, "a FIFO");
  ReadRequest file = Request(folder.Write("f", Pattern(10)));
  Read(file);
  ExpectBytes(file, Pattern(10));
}

// The kernel cancels the reads; other files are read meanwhile and afterwards.
TEST_P(ReaderFlowTest, GivesUpReadsThatTakeTooLong) {
  if (GetParam() != ReaderKind::kUring) GTEST_SKIP() << "pread has no time limit";
  Make(3, 64, std::chrono::seconds(1));  // the file is read sooner, also on a busy machine
  ASSERT_EQ(mkfifo(folder.Path("fifo").c_str(), 0644), 0);
  ASSERT_EQ(mkfifo(folder.Path("opened").c_str(), 0644), 0);
  std::fstream writer(folder.Path("opened"));  // to open it does not wait, to read it does
  for (int round = 0; round < 2; ++round) {
    ReadRequest fifo = Request(folder.Path("fifo"));
    ReadRequest opened = Request(folder.Path("opened"), 0, 10);
    ReadRequest file = Request(folder.Write("f", Pattern(10)));
    ReadRequest* const all[] = {&fifo, &opened, &file};
    ReadRequest* done[3] = {};
    ASSERT_EQ(reader->Submit(all), 3u);
    while (reader->in_flight() > 0) reader->Reap(done, /*wait=*/true);
    ExpectError(fifo, Code::kUnavailable, "the read has not ended within 1 s");
    ExpectError(opened, Code::kUnavailable, "the read has not ended within 1 s");
    ExpectBytes(file, Pattern(10));
  }
}

// Returns the descriptor of the one ring of this process; -1 means there is none.
int RingDescriptor() {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;  // that of the folder itself
    const auto file = std::filesystem::read_symlink(entry, gone);
    if (file == "anon_inode:[io_uring]") return std::stoi(entry.path().filename());
  }
  return -1;
}

// Like daemons do, closes all descriptors, so that the next files get their numbers.
TEST_P(ReaderFlowTest, LeavesADescriptorAloneThatIsItsNoMore) {
  const int descriptor = RingDescriptor();
  if (descriptor < 0) GTEST_SKIP() << "there is no ring";
  const int before = open(folder.Write("program's", Pattern(3)).c_str(), O_RDONLY);
  ASSERT_EQ(dup2(before, descriptor), descriptor);
  ReadRequest file = Request(folder.Write("f", Pattern(10)));
  Read(file);
  ExpectBytes(file, Pattern(10));
  reader.reset();
  EXPECT_GE(fcntl(descriptor, F_GETFD), 0) << "the reader has closed it";
  close(descriptor);
  close(before);
}

// The FIFO's read is in flight in the reader's own ring, which nobody can enter any more.
TEST_P(ReaderFlowTest, NoticesAnotherRingInPlaceOfItsOwn) {
  ASSERT_EQ(mkfifo(folder.Path("fifo").c_str(), 0644), 0);
  for (const bool on_another_thread : {false, true}) {
    Make(8);
    const int descriptor = RingDescriptor();
    if (descriptor < 0) GTEST_SKIP() << "there is no ring";
    ReadRequest fifo = Request(folder.Path("fifo"));
    ReadRequest* request = &fifo;
    ASSERT_EQ(reader->Submit({&request, 1}), 1u);
    const int kept = dup(descriptor);
    close(descriptor);
    std::unique_ptr<Reader> other;
    const auto make = [&] { other = MakeUringReader(8).value(); };
    on_another_thread ? std::thread(make).join() : make();
    ASSERT_EQ(RingDescriptor(), descriptor);
    while (reader->in_flight() > 0) reader->Reap({&request, 1}, /*wait=*/true);
    ExpectError(fifo, Code::kInvalidArgument, "a FIFO");
    reader.reset();
    EXPECT_EQ(RingDescriptor(), descriptor) << "the reader has closed it";
    close(kept);
  }
}

// Asks the kernel to drop its copy of a file, so that the next read waits for the disk.
void Evict(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY);
  fdatasync(descriptor);
  posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
  close(descriptor);
}

TEST_P(ReaderFlowTest, ReadsFilesOutsideThePageCache) {
  std::vector<ReadRequest> requests;
  std::vector<ReadRequest*> all, done(8);
  for (uint32_t i = 0; i < 8; ++i) {
    requests.push_back(Request(folder.Write(std::to_string(i), Pattern(150'000 * i + 1, i))));
  }
  for (ReadRequest& r : requests) all.push_back(&r);
  for (int round = 0; round < 10; ++round) {
    for (ReadRequest& r : requests) {
      Evict(r.path);
      r.buffer.Free();
    }
    ASSERT_EQ(reader->Submit(all), 8u);
    size_t n = 0;
    while (n < 8) n += reader->Reap(done, round % 2 == 0);
    for (uint32_t i = 0; i < 8; ++i) ExpectBytes(requests[i], Pattern(150'000 * i + 1, i));
  }
}

TEST_P(ReaderFlowTest, DestructorReapsReadsInFlight) {
  ASSERT_EQ(mkfifo(folder.Path("fifo").c_str(), 0644), 0);
  std::fstream writer(folder.Path("fifo"));
  const std::string path = folder.Write("f", Pattern(1 << 20));
  for (int round = 0; round < 20; ++round) {
    Make(32);
    std::vector<ReadRequest> requests(32);
    std::vector<ReadRequest*> all;
    for (ReadRequest& r : requests) {
      r = Request(path);
      all.push_back(&r);
    }
    Evict(path);
    // Only the ring can leave the read waiting; pread refuses the file in Submit.
    if (round % 5 == 0) requests[round].path = folder.Path("fifo");
    ASSERT_EQ(reader->Submit(all), all.size());
    if (round % 2 == 1) {
      while (reader->Reap({all.data(), 3}, true) == 0) {
      }
    }
    reader.reset();  // and only now the buffers
  }
}

TEST_P(ReaderFlowTest, AcceptsNoMoreThanItsCapacity) {
  EXPECT_EQ(reader->capacity(), 8u);
  const std::vector<uint8_t> bytes = Pattern(100);
  const std::string path = folder.Write("f", bytes);
  std::vector<ReadRequest> requests;
  std::vector<ReadRequest*> all, done(20);
  for (int i = 0; i < 20; ++i) requests.push_back(Request(path));
  for (ReadRequest& r : requests) all.push_back(&r);
  EXPECT_EQ(reader->Reap(done, true), 0u);
  EXPECT_EQ(reader->Reap(done, false), 0u);
  EXPECT_EQ(reader->Submit({}), 0u);
  EXPECT_EQ(reader->Submit(all), 8u);
  EXPECT_EQ(reader->in_flight(), 8u);
  EXPECT_EQ(reader->Submit({all.data() + 8, 12}), 0u);
  EXPECT_EQ(reader->Reap({done.data(), 0}, true), 0u);
  size_t n = 0;
  while (n < 3) n += reader->Reap({done.data() + n, 3 - n}, true);  // a short span
  EXPECT_EQ(reader->in_flight(), 5u);
  EXPECT_EQ(reader->Submit({all.data() + 8, 12}), 3u);
  while (reader->in_flight() > 0) n += reader->Reap({done.data() + n, 20 - n}, n % 2 == 0);
  EXPECT_EQ(n, 11u);
  EXPECT_EQ(std::set<ReadRequest*>(done.begin(), done.begin() + 11),
            std::set<ReadRequest*>(all.begin(), all.begin() + 11));
  for (int i = 0; i < 11; ++i) ExpectBytes(*all[i], bytes);
}

TEST_P(ReaderFlowTest, LeaksNoDescriptors) {
  Make(32);
  std::vector<std::vector<uint8_t>> contents;
  std::vector<std::string> paths;
  for (uint32_t i = 0; i < 40; ++i) {
    contents.push_back(Pattern(1000 + i * 10'007, i));  // some are larger than the first buffer
    paths.push_back(folder.Write(std::to_string(i), contents.back()));
  }
  std::vector<ReadRequest> requests;
  std::vector<ReadRequest*> free, done(32);
  for (int i = 0; i < 32; ++i) requests.push_back(Request(""));
  for (ReadRequest& r : requests) free.push_back(&r);
  constexpr size_t kReads = 5000;
  for (size_t started = 0, finished = 0; finished < kReads;) {
    std::vector<ReadRequest*> batch;
    for (; !free.empty() && started < kReads; ++started) {
      ReadRequest& r = *free.back();
      free.pop_back();
      r.path = started % 50 == 7 ? folder.Path("missing") : paths[started % 40];
      r.owner = &contents[started % 40];
      batch.push_back(&r);
    }
    ASSERT_EQ(reader->Submit(batch), batch.size());
    const size_t n = reader->Reap({done.data(), 1 + finished % 32}, true);
    for (size_t i = 0; i < n; ++i, ++finished) {
      if (done[i]->path == folder.Path("missing")) {
        ExpectError(*done[i], Code::kNotFound);
      } else {
        ExpectBytes(*done[i], *static_cast<std::vector<uint8_t>*>(done[i]->owner));
      }
      free.push_back(done[i]);
    }
  }
  EXPECT_EQ(folder.OpenFiles(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Kinds, ReaderFlowTest, testing::kReaderKinds, testing::NameOf);

}  // namespace
}  // namespace stoker
