// What of a sample is left to a device.
#pragma once

#include <cstdint>

#include "transforms/plan/drawn.h"

namespace stoker {

// Takes what a device can do from the end of `drawn`, and writes it to `work`: a RowWork and
// `boxes` boxes, all of them, whatever was there before. That is what is erased; and a mirror of
// the columns where it is the last thing done before that. Precondition: no more erasures than
// boxes.
void LeaveToDevice(DrawnSample& drawn, uint32_t boxes, void* work);

}  // namespace stoker
