// Starts threads. Where the system has no more of them that is an error with words, for a
// std::thread's exception would end the process.
#pragma once

#include <functional>
#include <string>
#include <thread>

#include "core/machine.h"
#include "core/result.h"

namespace stoker {

// `what`: "a reader thread", for the error. ResourceExhausted, with the limits that are set.
Result<std::thread> StartThread(const std::string& what, std::function<void()> run);

// Runs `loop` on the calling thread and on up to threads − 1 others (0: the cores allotted), and
// returns when all are back. Where the system gives fewer threads, those that there are do the
// work.
void InParallel(int threads, const std::function<void()>& loop);

// How many threads can be had at a time, up to `wanted`: starts them, and ends them before it
// returns. What holds now may not hold later, for limits are shared with others.
int ThreadsToBeHad(int wanted);

// The limits of this process' threads that are set, each with its name and value: "RLIMIT_NPROC
// (`ulimit -u`) is 100 threads of this user, pids.max of the cgroup is 64, 63 in use".
// Empty: none.
std::string ThreadLimits(const MachineRoot& root = {});

}  // namespace stoker
