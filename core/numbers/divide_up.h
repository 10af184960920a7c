// DivideUp: a quotient, rounded up.
#pragma once

namespace stoker {

// Preconditions: a >= 0, b > 0, and a + b - 1 is an int.
constexpr int DivideUp(int a, int b) { return (a + b - 1) / b; }

}  // namespace stoker
