// Images decoded to NumPy arrays of their own size.
#pragma once

#include "core/result.h"
#include "engine/arrays/decoder_pool.h"
#include "transforms/plan/plan.h"

namespace pybind11 {
class object;
}

namespace stoker::python {

// The array, or the error as an exception. Releasing the array frees its memory, without the GIL or
// with it. With the GIL held.
pybind11::object ToArray(Result<DecodedArray>&& decoded);

// The whole image, with the plan's type, layout and orientation.
ArrayRequest RequestOf(const PlanOptions& options);

}  // namespace stoker::python
