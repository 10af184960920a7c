// SlowReader: a Reader that wraps another one and makes its reads take longer, for tests and
// benchmarks: by a latency, a limited throughput, periodic stalls, or per file. In real time.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "io/readers/reader.h"

namespace stoker {

// The ways in which storage is slow. Each read takes as long as the slowest of them.
struct SlowStorage {
  using Duration = std::chrono::nanoseconds;
  Duration latency{0};                                  // of each read
  std::function<Duration(const std::string&)> extra{};  // of reads of a path, in addition to the
                                                        // latency
  uint64_t bytes_per_second = 0;                        // of all reads together; 0 means no limit
  // No read ends in the first `stall` of every `stall_every`, counted from the construction of the
  // disk.
  Duration stall{0};
  Duration stall_every{0};  // 0: never
};

// The disk that slow readers share. Thread-safe.
class SlowDisk {
 public:
  explicit SlowDisk(SlowStorage storage) : storage_(std::move(storage)) {}

  using Time = std::chrono::steady_clock::time_point;
  // Returns when a read that was submitted at `begun` may end; its size is known.
  Time EndOf(const ReadRequest& request, Time begun);

 private:
  const SlowStorage storage_;
  const Time made_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  Time busy_until_;  // until then throughput is used up; under mutex_
};

// For use with RuntimeWithReaders:
//   [disk = std::make_shared<SlowDisk>(storage)] {
//     return SlowReader::Make(MakePreadReader(32), disk);
//   }
class SlowReader final : public Reader {
 public:
  static Result<std::unique_ptr<Reader>> Make(Result<std::unique_ptr<Reader>> inner,
                                              std::shared_ptr<SlowDisk> disk);
  SlowReader(std::unique_ptr<Reader> inner, std::shared_ptr<SlowDisk> disk);
  ~SlowReader() override;

  size_t Submit(std::span<ReadRequest* const> requests) override;
  size_t Reap(std::span<ReadRequest*> done, bool wait) override;
  void CloseFiles() override { inner_->CloseFiles(); }
  size_t in_flight() const override { return inner_->in_flight() + held_.size(); }
  size_t capacity() const override { return inner_->capacity(); }
  const char* name() const override { return "slow"; }

 private:
  struct Held {
    ReadRequest* request;
    SlowDisk::Time end;
  };

  void ReapInner(bool wait);

  const std::unique_ptr<Reader> inner_;
  const std::shared_ptr<SlowDisk> disk_;
  std::vector<std::pair<const ReadRequest*, SlowDisk::Time>> begun_;  // in the inner one
  std::vector<Held> held_;                                            // read, and not yet due
};

}  // namespace stoker
