#include "tests/torture/hang_watch.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace stoker::testing {

HangWatch::HangWatch(uint64_t seed, std::string what, std::chrono::seconds longest)
    : seed_(seed), what_(std::move(what)), longest_(longest), thread_([this] { Watch(); }) {}

HangWatch::~HangWatch() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void HangWatch::Begin(uint64_t number) {
  const std::lock_guard lock(mutex_);
  number_ = number;
  ++begun_;
  changed_.notify_all();
}

void HangWatch::Watch() {
  std::unique_lock lock(mutex_);
  while (!ended_) {
    const uint64_t begun = begun_;
    const auto moved = [&] { return ended_ || begun_ != begun; };
    if (changed_.wait_for(lock, longest_, moved)) continue;
    std::printf("seed %llu, %s %llu: it hangs\n", static_cast<unsigned long long>(seed_),
                what_.c_str(), static_cast<unsigned long long>(number_));
    std::fflush(stdout);
    std::_Exit(2);
  }
}

}  // namespace stoker::testing
