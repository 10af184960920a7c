// Chooses io_uring or pread, by a probe and a measurement that take a few milliseconds.
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "core/memory/memory_budget.h"
#include "core/system/machine.h"
#include "core/time/stage_times.h"
#include "io/readers/plain_read.h"
#include "io/readers/reader.h"

namespace stoker {

namespace {

constexpr uint32_t kTrialReads = 16;
constexpr int kTrialRounds = 7;
constexpr size_t kTrialBytes = 128 << 10;  // about the size of a photograph

// With a warm page cache both cost the same; with a cold one, only the ring reads many files at a
// time. So the ring is given up only if it is clearly slower (as on file systems where it needs
// helper threads).
constexpr double kClearlySlower = 1.5;

constexpr uint32_t kMaxReads = 1024;
constexpr uint32_t kMostFiles = 1024;  // kept open by all readers of the process together

// A file of kTrialBytes in $TMPDIR, removed on destruction.
class TrialFile {
 public:
  TrialFile() {
    const char* folder = getenv("TMPDIR");
    path_ = std::string(folder != nullptr ? folder : "/tmp") + "/stoker-XXXXXX";
    const int descriptor = mkstemp(path_.data());
    if (descriptor < 0) return;
    made_ = true;
    const std::string bytes(kTrialBytes, 's');
    written_ = write(descriptor, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
    close(descriptor);
  }
  TrialFile(const TrialFile&) = delete;
  TrialFile& operator=(const TrialFile&) = delete;
  ~TrialFile() {
    if (made_) unlink(path_.c_str());
  }

  bool ok() const { return written_; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  bool made_ = false;
  bool written_ = false;
};

// Reads the file once for each request. Returns microseconds per read; negative if a read failed.
double Round(Reader& reader, std::vector<ReadRequest>& requests) {
  std::array<ReadRequest*, kTrialReads> all{};
  for (size_t i = 0; i < requests.size(); ++i) all[i] = &requests[i];
  const uint64_t start = NowNanoseconds();
  reader.Submit({all.data(), requests.size()});
  bool read = true;
  while (const size_t n = reader.Reap(all, /*wait=*/true)) {
    for (size_t i = 0; i < n; ++i) read = read && all[i]->status.ok();
  }
  const double elapsed = static_cast<double>(NowNanoseconds() - start);
  return read ? elapsed / 1e3 / static_cast<double>(requests.size()) : -1.0;
}

std::string Microseconds(double value) {
  std::array<char, 32> text{};
  (void)std::snprintf(text.data(), text.size(), "%.1f us", value);
  return text.data();
}

ReaderChoice Measure(Reader& uring) {
  const TrialFile file;
  MemoryBudget budget(2 * kTrialReads * kFirstBufferBytes);
  std::vector<ReadRequest> requests(kTrialReads);
  for (ReadRequest& request : requests) {
    request.path = file.path();
    request.buffer = GrowingBuffer(budget);
  }
  const std::unique_ptr<Reader> pread = MakePreadReader(kTrialReads);
  if (!file.ok() || Round(*pread, requests) < 0 ||
      Round(uring, requests) < 0) {  // also warms up both
    return {ReaderKind::kUring,
            "io_uring: works here, but not measured, because no temporary file (" + file.path() +
                ") could be written and read"};
  }
  std::array<double, kTrialRounds> ring_us{};
  std::array<double, kTrialRounds> pread_us{};
  for (int i = 0; i < kTrialRounds; ++i) {  // alternating, so that both see the same load
    pread_us[i] = Round(*pread, requests);
    ring_us[i] = Round(uring, requests);
  }
  // The fastest rounds: on a busy machine, others' time slices lengthen single rounds.
  const double ring = std::ranges::min(ring_us);
  const double plain = std::ranges::min(pread_us);
  const std::string times = Microseconds(ring) + " a read against pread's " + Microseconds(plain);
  if (ring > kClearlySlower * plain) {
    return {ReaderKind::kPread, "pread: io_uring is slower here, " + times};
  }
  return {ReaderKind::kUring,
          "io_uring: " + times + ", and it reads many files at a time when the disk is cold"};
}

Error CannotLimit(const std::string& why) {
  return {.code = Code::kInvalidArgument,
          .cause = "read_timeout needs io_uring, because other reads cannot be given up: " + why,
          .advice = "Leave read_timeout at 0"};
}

}  // namespace

Result<ReaderChoice> ChooseReader(ReaderKind wanted, uint32_t reads, bool limited) {
  if (wanted == ReaderKind::kPread) {
    if (limited) return CannotLimit("the reader is pread");
    return ReaderChoice{wanted, "pread: requested"};
  }
  Result<std::unique_ptr<Reader>> uring = MakeUringReader(std::max(reads, kTrialReads));
  if (wanted == ReaderKind::kUring) {
    if (!uring.ok()) return std::move(uring).error();
    return ReaderChoice{wanted, "io_uring: requested"};
  }
  if (limited) {
    if (!uring.ok()) return CannotLimit(uring.error().cause);
    return ReaderChoice{ReaderKind::kUring, "io_uring: reads have a time limit"};
  }
  if (!uring.ok()) return ReaderChoice{ReaderKind::kPread, "pread: " + uring.error().cause};
  return Measure(**uring);
}

Result<std::unique_ptr<Reader>> MakeReader(ReaderKind kind, uint32_t reads, int readers,
                                           std::chrono::nanoseconds limit) {
  if (reads < 1 || reads > kMaxReads) {
    return Error{.code = Code::kInvalidArgument,
                 .cause = std::to_string(reads) + " reads in flight: from 1 to " +
                          std::to_string(kMaxReads) + " are possible"};
  }
  const auto sharing = static_cast<uint32_t>(std::max(readers, 1));
  if (kind == ReaderKind::kPread) {
    return MakePreadReader(reads, std::min(kMostFiles, DescriptorLimit() / 8) / sharing);
  }
  return MakeUringReader(reads, kMostFiles / sharing, nullptr, limit);
}

}  // namespace stoker
