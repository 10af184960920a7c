// Calls what tools/old_libraries.py replaces, and prints what the calls return.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <filesystem>
#include <iostream>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>

namespace {

const auto kMadeBeforeMain =
    std::make_shared<std::string>("a global of this program has been constructed");

void Print(int returned, const struct stat& info) {
  std::cout << returned << ' ' << (returned ? errno : 0) << ' ' << info.st_mode << ' '
            << info.st_size << ' ' << info.st_ino << ' ' << info.st_mtim.tv_nsec << ' '
            << info.st_nlink << '\n';
}

void PrintStats(const char* path) {
  struct stat info {};
  Print(stat(path, &info), info);
  Print(lstat(path, &info), info);
  Print(fstatat(AT_FDCWD, path, &info, AT_SYMLINK_NOFOLLOW), info);
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  Print(fstat(file, &info), info);
  if (file >= 0) close(file);
}

void PrintWaits() {
  using std::chrono::hours;
  using std::chrono::milliseconds;
  using std::chrono::steady_clock;
  using std::chrono::system_clock;
  std::condition_variable condition;
  std::mutex mutex;
  std::unique_lock lock(mutex);
  const auto until = steady_clock::now() + milliseconds(20);
  std::cout << condition.wait_until(lock, until, [] { return false; })
            << (steady_clock::now() >= until)
            << condition.wait_until(lock, system_clock::now() - hours(1), [] { return false; })
            << condition.wait_until(lock, steady_clock::now() - hours(1), [] { return false; });
  bool woken = false;
  std::thread waker([&] {
    const std::lock_guard guard(mutex);
    woken = true;
    condition.notify_all();
  });
  std::cout << condition.wait_for(lock, hours(1), [&] { return woken; });
  lock.unlock();
  waker.join();
  std::timed_mutex timed;
  const std::lock_guard guard(timed);
  std::thread([&] { std::cout << timed.try_lock_for(milliseconds(20)) << '\n'; }).join();
}

}  // namespace

int main(int argc, char** argv) {
  std::cout << *kMadeBeforeMain << ' ' << (gettid() == getpid()) << '\n';
  for (int i = 1; i < argc; ++i) {
    PrintStats(argv[i]);
    std::error_code error;
    const auto type = std::filesystem::status(argv[i], error).type();
    std::cout << static_cast<int>(type) << ' ' << error.message() << ' '
              << std::filesystem::path(argv[i]).lexically_normal() << '\n';
  }
  PrintWaits();
  for (const double value : {0.1, 1e300, 5e-324, std::pow(1.1, argc), std::log2(argc + 0.5)}) {
    char text[64];
    const auto end = std::to_chars(text, text + sizeof text, value).ptr;
    double again = 0;
    std::from_chars(text, end, again);
    std::cout << std::string(text, end) << ' ' << (again == value) << '\n';
  }
  try {
    std::filesystem::directory_iterator("/nowhere");
  } catch (const std::system_error& error) {
    std::cout << error.what() << '\n';
  }
}
