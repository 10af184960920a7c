#include "core/system/start_thread.h"

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <new>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

namespace stoker {

namespace {

std::optional<rlim_t> SoftLimit(decltype(RLIMIT_AS) resource) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return limit.rlim_cur;
}

Error NoThread(const std::string& what, const std::string& why) {
  const std::string limits = ThreadLimits();
  return {.code = Code::kResourceExhausted,
          .cause = "cannot start " + what + ": " + why +
                   (limits.empty() ? "; no thread limit is set for this process" : "; " + limits),
          .advice = "Raise the limit, end other processes and threads, or ask for fewer threads"};
}

// Returns nullopt instead of throwing if no thread can be started.
std::optional<std::thread> TryStart(const std::function<void()>& run) noexcept {
  try {
    return std::thread(run);
  } catch (...) {
    return std::nullopt;
  }
}

// A thread counts against the limits until the kernel has removed it, even after it was joined.
void AwaitEnd(pid_t thread) {
  constexpr int kPatience = 1000;
  for (int i = 0; i < kPatience && syscall(SYS_tgkill, getpid(), thread, 0) == 0; ++i) {
    usleep(100);
  }
}

}  // namespace

Result<std::thread> StartThread(const std::string& what, std::function<void()> run) {
  try {
    return std::thread(std::move(run));
  } catch (const std::system_error& error) {
    return NoThread(what, error.code().message());
  } catch (const std::bad_alloc&) {
    return NoThread(what, "out of memory");
  }
}

void NameThread(const char* name) { pthread_setname_np(pthread_self(), name); }

void BecomeBackgroundThread(const char* name) {
  NameThread(name);
  const sched_param no_priority{};
  // 0 means the calling thread. Where a sandbox forbids the call, the policy stays as it is.
  if (sched_getscheduler(0) == SCHED_OTHER) (void)sched_setscheduler(0, SCHED_BATCH, &no_priority);
}

void InParallel(int threads, const std::function<void()>& loop) {
  const int wanted = threads == 0 ? AllottedCores() : threads;
  std::vector<std::thread> helpers;
  helpers.reserve(static_cast<size_t>(std::max(wanted, 0)));
  for (int i = 1; i < wanted; ++i) {
    std::optional<std::thread> helper = TryStart(loop);
    if (!helper) break;
    helpers.push_back(*std::move(helper));
  }
  loop();
  for (std::thread& helper : helpers) helper.join();
}

int ThreadsToBeHad(int wanted) {
  std::mutex mutex;
  std::condition_variable ended;
  bool end = false;
  std::vector<std::thread> threads;
  std::vector<pid_t> ids;
  threads.reserve(static_cast<size_t>(wanted));
  ids.reserve(static_cast<size_t>(wanted));
  const std::function<void()> wait = [&] {
    std::unique_lock lock(mutex);
    ids.push_back(static_cast<pid_t>(syscall(SYS_gettid)));
    ended.wait(lock, [&] { return end; });
  };
  for (int i = 0; i < wanted; ++i) {
    std::optional<std::thread> thread = TryStart(wait);
    if (!thread) break;
    threads.push_back(*std::move(thread));
  }
  {
    std::lock_guard lock(mutex);
    end = true;
  }
  ended.notify_all();
  for (std::thread& thread : threads) thread.join();
  for (const pid_t id : ids) AwaitEnd(id);
  return static_cast<int>(threads.size());
}

std::string ThreadLimits(const MachineRoot& root) {
  std::string text;
  const auto add = [&text](const std::string& limit) {
    text += (text.empty() ? "" : ", ") + limit;
  };
  if (const auto threads = SoftLimit(RLIMIT_NPROC)) {
    add("RLIMIT_NPROC (`ulimit -u`) is " + std::to_string(*threads) + " threads of this user");
  }
  if (const std::optional<CgroupThreads> group = ThreadsOfCgroup(root)) {
    add("pids.max of the cgroup is " + std::to_string(group->most) + ", " +
        std::to_string(group->there) + " in use");
  }
  if (const auto bytes = SoftLimit(RLIMIT_AS)) {
    add("RLIMIT_AS (`ulimit -v`) is " + std::to_string(*bytes >> 20) + " MiB of address space");
  }
  return text;
}

}  // namespace stoker
