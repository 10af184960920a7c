// FaultyDisk: the system calls of readers, some of which fail, fall short, or take as long as a
// test wants. Which ones is a function of the seed, the file's name, the offset and how often the
// call was made before, so that a seed gives the same faults whichever thread reads.
#pragma once

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <tuple>

#include "io/readers/plain_read.h"

namespace stoker::testing {

// The faults of system calls. The numbers are fractions of the calls that they concern.
struct DiskFaults {
  uint64_t seed = 1;
  double interrupted = 0;    // opens and reads: EINTR
  double would_block = 0;    // reads of a descriptor with O_NONBLOCK: EAGAIN
  double shorter = 0;        // reads: fewer bytes than there are, but at least one
  double no_descriptor = 0;  // opens: EMFILE or ENFILE
  // Reads of this file fail with `error` from this byte on; earlier bytes are read.
  std::string bad_file{};
  uint64_t bad_from = 0;
  int error = EIO;
  // Called before each read on the thread that makes it: may wait, or change the file.
  std::function<void(const std::string& path, uint64_t offset)> before_read{};
};

class FaultyDisk {
 public:
  explicit FaultyDisk(DiskFaults faults) : faults_(std::move(faults)) {}

  // The calls of one reader. The disk must outlive them.
  std::shared_ptr<const FileCalls> Calls();

  // How often each fault has occurred.
  struct Counts {
    std::atomic<uint64_t> interrupted{0}, would_block{0}, shorter{0}, no_descriptor{0}, bad{0};
  };
  const Counts& counts() const { return counts_; }
  int open_files() const { return open_files_; }  // opened and not yet closed

 private:
  friend class FaultyCalls;
  enum class Kind : uint8_t { kInterrupted, kWouldBlock, kShorter, kNoDescriptor };

  bool Happens(Kind kind, double fraction, std::string_view path, uint64_t offset);

  const DiskFaults faults_;
  Counts counts_;
  std::atomic<int> open_files_{0};
  std::mutex mutex_;
  std::map<std::tuple<Kind, std::string, uint64_t>, uint64_t, std::less<>> made_;  // under mutex_
};

}  // namespace stoker::testing
