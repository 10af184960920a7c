// libstdc++ 12 gave std::condition_variable::wait a new symbol version, GLIBCXX_3.4.30. The linker
// chooses it, and a wheel would not load where libstdc++ 11 is (RHEL 9, Amazon Linux 2023). The
// only difference is what happens to a thread that pthread_cancel ends in the call, and stoker
// cancels no thread. So cmake/old_libstdcxx.cmake makes the linker `--wrap` the symbol, and all
// calls go through this file to the version that both have.
#include <condition_variable>
#include <mutex>

__asm__(
    ".symver StokerOldConditionWait, "
    "_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE@GLIBCXX_3.4.11");

// A member function has the same calling convention as one that takes the object first.
extern "C" void StokerOldConditionWait(std::condition_variable* condition,
                                       std::unique_lock<std::mutex>* lock) noexcept;

extern "C" void StokerConditionWait(std::condition_variable* condition,
                                    std::unique_lock<std::mutex>* lock) noexcept
    __asm__("__wrap__ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE");

extern "C" void StokerConditionWait(std::condition_variable* condition,
                                    std::unique_lock<std::mutex>* lock) noexcept {
  StokerOldConditionWait(condition, lock);
}
