// Interrupt: lets a caller out of a wait.
#pragma once

#include <chrono>
#include <functional>

namespace stoker {

// A waiting call asks it about every kInterruptInterval, on its own thread; true ends the wait as
// Cancelled. Nothing is lost: the next call delivers what this one would have. Empty: never asked.
using Interrupt = std::function<bool()>;

inline constexpr std::chrono::milliseconds kInterruptInterval{50};

}  // namespace stoker
