// Converts decoded images to NumPy arrays of their own size.
#pragma once

#include "core/result/result.h"
#include "engine/arrays/decoder_pool.h"

namespace pybind11 {
class object;
}

namespace stoker::python {

// Returns the array, or throws the error as an exception. Releasing the array frees its memory,
// without the GIL or with it. With the GIL held.
pybind11::object ToArray(Result<DecodedArray>&& decoded);

}  // namespace stoker::python
