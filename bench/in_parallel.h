// The same loop on several threads at once.
#pragma once

#include <functional>

namespace stoker {

// Runs `loop` on the calling thread and on up to threads − 1 others (0: the cores allotted), and
// returns when all are back. Where the system gives fewer threads, those that there are do the
// work.
void InParallel(int threads, const std::function<void()>& loop);

}  // namespace stoker
