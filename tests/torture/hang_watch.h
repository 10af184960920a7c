// HangWatch: ends the process, and names what it was doing, if that takes longer than any should.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

namespace stoker::testing {

class HangWatch {
 public:
  // `what` is in the message, with the seed and the number: "seed 1, set 7: it hangs".
  HangWatch(uint64_t seed, std::string what, std::chrono::seconds longest);
  ~HangWatch();

  // From now on it is this number that may take `longest`. Any thread.
  void Begin(uint64_t number);

 private:
  void Watch();

  const uint64_t seed_;
  const std::string what_;
  const std::chrono::seconds longest_;
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t number_ = 0;
  uint64_t begun_ = 0;  // how often Begin was called
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace stoker::testing
