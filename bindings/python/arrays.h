// Exposes batches as NumPy arrays that share their memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/batch.h"
#include "core/dtype.h"

namespace pybind11 {
class dtype;
class object;
}  // namespace pybind11

namespace stoker::python {

// NumPy's dtypes, and ml_dtypes' bfloat16. With the GIL held; throws if Python cannot import it.
pybind11::dtype NumPyType(DType dtype);

// A column as an array: writable, C order, 64-byte aligned, no copy. The array (and every view of
// it) keeps its own memory alive, and nothing else of the batch. Releasing it needs no GIL and may
// happen on any thread, as late as the interpreter's end. With the GIL held.
pybind11::object ArrayOf(const Batch& batch, size_t column);

// The same for any host memory that `owner` keeps alive.
pybind11::object ArrayOver(DType dtype, const std::vector<int64_t>& shape, const void* data,
                           std::shared_ptr<void> owner);

}  // namespace stoker::python
