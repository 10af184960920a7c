// Interrupt: how a caller is let out of a wait.
#pragma once

#include <chrono>
#include <functional>

namespace stoker {

// Asked about every kInterruptInterval by a call that waits, on the thread of that call; true ends
// the wait as Cancelled. Nothing is lost by it: the next call delivers what this one would have.
// Empty: never asked.
using Interrupt = std::function<bool()>;

inline constexpr std::chrono::milliseconds kInterruptInterval{50};

}  // namespace stoker
