// Prints what it catches from old_library.cc, and whether that waits by glibc's own function.
#include <dlfcn.h>
#include <pthread.h>

#include <exception>
#include <filesystem>
#include <iostream>
#include <stdexcept>

extern "C" {

void ThrowOfFilesystem();
void ThrowAgain(const std::exception_ptr& thrown);
long Wait();

// The linker's option --export-dynamic makes dlsym find this one before glibc's.
int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const timespec* time) {
  std::cout << "waits by clock " << clock << '\n';
  const auto own = reinterpret_cast<decltype(&pthread_cond_clockwait)>(
      dlsym(RTLD_NEXT, "pthread_cond_clockwait"));
  return own(condition, mutex, clock, time);
}

}  // extern "C"

int main() {
  try {
    ThrowOfFilesystem();
  } catch (const std::filesystem::filesystem_error& error) {
    std::cout << error.path1() << ' ' << (error.code() == std::errc::no_such_file_or_directory)
              << '\n';
  }
  try {
    ThrowAgain(std::make_exception_ptr(std::out_of_range("far")));
  } catch (const std::out_of_range& error) {
    std::cout << error.what() << '\n';
  }
  std::cout << Wait() << '\n';
}
