#include "bench/in_parallel.h"

#include <exception>
#include <thread>
#include <vector>

#include "engine/core/machine.h"

namespace stoker {

void InParallel(int threads, const std::function<void()>& loop) {
  const int wanted = threads == 0 ? AllottedCores() : threads;
  std::vector<std::thread> helpers;
  try {
    for (int i = 1; i < wanted; ++i) helpers.emplace_back(loop);
  } catch (const std::exception&) {  // std::system_error, std::bad_alloc
    // No more threads to be had: those that there are do the work.
  }
  loop();
  for (std::thread& helper : helpers) helper.join();
}

}  // namespace stoker
