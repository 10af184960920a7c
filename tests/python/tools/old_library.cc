// A shared library that is linked with what tools/old_libraries.py makes, for old_caller.cc.
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <exception>
#include <filesystem>
#include <memory>
#include <mutex>

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED void ThrowOfFilesystem() { std::filesystem::create_directory("/nowhere/below"); }

EXPORTED void ThrowAgain(const std::exception_ptr& thrown) { std::rethrow_exception(thrown); }

EXPORTED long Wait() {
  std::mutex mutex;
  std::condition_variable condition;
  std::unique_lock lock(mutex);
  condition.wait_for(lock, std::chrono::milliseconds(1), [] { return false; });
  struct stat info {};
  return stat("/", &info) + *std::make_shared<long>(gettid() == getpid() ? 0 : 1);
}
