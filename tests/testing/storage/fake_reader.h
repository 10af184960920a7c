// FakeReader: a Reader of files that exist only in memory, for tests of later stages: it completes
// out of order, at once or late, and fails as planned. The same seed and the same calls give the
// same completions.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "io/readers/reader.h"

namespace stoker::testing {

// The fault of one file.
struct FakeFault {
  int error_number = 0;  // ENOENT, EACCES, EIO, …
  int times = -1;        // the number of first reads that fail, for each reader; -1 means all
};

// The files and the faults. Immutable; shared by any number of readers on any threads.
struct FakeDisk {
  std::map<std::string, std::vector<uint8_t>> files;  // by path; all others are NotFound
  std::map<std::string, FakeFault> faults;            // by path; stronger than `files`
  std::map<std::string, size_t> room;  // by path: the buffer that a read takes, if it is larger
                                       // than the file
  double random_failures = 0;          // fraction of reads that fail with EIO
  double at_once = 0.5;                // fraction of reads that have completed when Submit returns
  uint32_t longest_delay = 8;  // the others complete after 1 to `longest_delay` calls of Reap
};

class FakeReader final : public Reader {
 public:
  // `depth`: 1 or more.
  FakeReader(std::shared_ptr<const FakeDisk> disk, uint32_t depth, uint64_t seed);

  size_t Submit(std::span<ReadRequest* const> requests) override;
  // Completes due reads out of order. With `wait`, time jumps to the first that is due.
  size_t Reap(std::span<ReadRequest*> done, bool wait) override;
  size_t in_flight() const override { return flights_.size(); }
  size_t capacity() const override { return depth_; }
  const char* name() const override { return "fake"; }

 private:
  struct Flight {
    ReadRequest* request;
    uint64_t due;
  };

  uint64_t Random();
  bool Chance(double fraction);
  int FaultOf(const std::string& path);  // an errno, or 0
  size_t RoomFor(const std::string& path, size_t size) const;
  void Read(ReadRequest& request);

  const std::shared_ptr<const FakeDisk> disk_;
  const size_t depth_;
  uint64_t state_;
  uint64_t time_ = 0;  // calls of Reap
  std::vector<Flight> flights_;
  std::map<std::string, int> failed_;  // how often each faulty file has failed already
};

}  // namespace stoker::testing
