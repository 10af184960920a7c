// Splits off the operations of a sample that are deferred to a device.
#pragma once

#include <cstdint>

#include "transforms/plan/drawn.h"

namespace stoker {

// Moves the operations that a device can do from the end of `drawn` to `work`, which becomes a
// DeferredOps followed by `boxes` boxes and is overwritten completely. These operations are the
// erasures, and a horizontal mirror if it is the last operation before them and the image fills its
// row, whose size is `row`. Precondition: no more erasures than boxes.
void DeferToDevice(DrawnSample& drawn, ImageSize row, uint32_t boxes, void* work);

// Adds two erasures to zero, of the pixels of the row to the right of the image and of those below
// it. One or both may be empty.
void EraseAround(DrawnSample& drawn, ImageSize row);

}  // namespace stoker
