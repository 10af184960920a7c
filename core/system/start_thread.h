// Starts threads. A system without free threads is reported as an Error; std::thread's exception
// would end the process.
#pragma once

#include <functional>
#include <string>
#include <thread>

#include "core/result/result.h"
#include "core/system/machine.h"

namespace stoker {

// `what` names the thread in the error: "a reader thread". ResourceExhausted, with the limits that
// are set.
Result<std::thread> StartThread(const std::string& what, std::function<void()> run);

// Sets the name under which debuggers show the calling thread, at most 15 characters.
void NameThread(const char* name);

// Names the calling thread, and prepares it for work that takes long. On wake-up the thread waits
// for a core instead of preempting a running thread (SCHED_BATCH): the program's own thread wakes
// it while it asks for a batch, and would otherwise lose its core for a scheduler tick. The
// thread's share of busy cores stays the same. A policy that is not the default is kept.
//
// Not for threads that work briefly while others wait for them, such as readers: where workers keep
// all cores busy, a woken one would wait for the next tick, and workers would run out of samples
// meanwhile.
void BecomeBackgroundThread(const char* name);

// Runs `loop` on the calling thread and on up to threads − 1 others (0 means the cores allotted),
// and returns when all have finished. If the system gives fewer threads, those do the work.
void InParallel(int threads, const std::function<void()>& loop);

// Returns how many threads, up to `wanted`, can be started now; starts them and ends them before it
// returns. Limits are shared with other processes, so the number may change at any time.
int ThreadsToBeHad(int wanted);

// The thread limits of this process, each with its name and value: "RLIMIT_NPROC (`ulimit -u`) is
// 100 threads of this user, pids.max of the cgroup is 64, 63 in use". Empty: none.
std::string ThreadLimits(const MachineRoot& root = {});

}  // namespace stoker
