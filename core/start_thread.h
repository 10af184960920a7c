// Starts threads. If the system has none left this is an Error; std::thread's exception would end
// the process.
#pragma once

#include <functional>
#include <string>
#include <thread>

#include "core/machine.h"
#include "core/result.h"

namespace stoker {

// `what` names the thread in the error: "a reader thread". ResourceExhausted, with the limits that
// are set.
Result<std::thread> StartThread(const std::string& what, std::function<void()> run);

// For the calling thread, once: debuggers show it by this name, of 15 characters at most; and when
// it wakes up it waits for a core instead of taking one from a thread that runs (SCHED_BATCH). The
// program's own thread wakes it from a call for a batch, and would lose its core for a tick of the
// scheduler. Its share of busy cores stays the same. A policy that is not the default is kept.
void BecomeBackgroundThread(const char* name);

// Runs `loop` on the calling thread and on up to threads − 1 others (0: the cores allotted), and
// returns when all have finished. If the system gives fewer threads, those do the work.
void InParallel(int threads, const std::function<void()>& loop);

// The number of threads, up to `wanted`, that can be started now; starts them and ends them before
// it returns. Limits are shared with other processes, so it may change at any time.
int ThreadsToBeHad(int wanted);

// The thread limits of this process, each with its name and value: "RLIMIT_NPROC (`ulimit -u`) is
// 100 threads of this user, pids.max of the cgroup is 64, 63 in use". Empty: none.
std::string ThreadLimits(const MachineRoot& root = {});

}  // namespace stoker
