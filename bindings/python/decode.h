// Converts decoded images to NumPy arrays of their own size.
#pragma once

#include "core/result.h"
#include "engine/arrays/decoder_pool.h"
#include "transforms/plan/plan.h"

namespace pybind11 {
class object;
}

namespace stoker::python {

// Returns the array, or throws the error as an exception. Releasing the array frees its memory,
// without the GIL or with it. With the GIL held.
pybind11::object ToArray(Result<DecodedArray>&& decoded);

// Returns a request of the whole image, with the plan's type, layout and orientation.
ArrayRequest RequestOf(const PlanOptions& options);

}  // namespace stoker::python
