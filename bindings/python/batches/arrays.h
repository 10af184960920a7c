// Exposes batches as NumPy arrays that share their memory, and their strings as lists.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/batch/batch.h"
#include "core/batch/dtype.h"
#include "io/source/source.h"

namespace pybind11 {
class array;
class dtype;
class list;
class object;
}  // namespace pybind11

namespace stoker::python {

// Returns NumPy's dtype, or ml_dtypes' bfloat16. With the GIL held; throws if Python cannot import
// it.
pybind11::dtype NumPyType(DType dtype);

// Returns the type of an array's elements. Precondition: stoker supports it.
DType DTypeOf(const pybind11::array& array);

// Returns a column as an array: writable, C order, 64-byte aligned, no copy. The array (and every
// view of it) keeps its own memory alive, and nothing else of the batch. Releasing it needs no GIL
// and may happen on any thread, as late as the interpreter's end. A ragged column is a
// stoker.Ragged of two such arrays. With the GIL held.
pybind11::object ArrayOf(const Batch& batch, size_t column);

// Returns a stoker.Ragged of arrays or tensors. With the GIL held.
pybind11::object RaggedOf(const pybind11::object& values, const pybind11::object& offsets);

// Returns an array, as ArrayOf does, for any host memory that `owner` keeps alive.
pybind11::object ArrayOver(DType dtype, const std::vector<int64_t>& shape, const void* data,
                           std::shared_ptr<void> owner);

// Returns the strings that these samples have in a field of strings: str, or bytes. Text that is
// not UTF-8 keeps its bytes as surrogates (PEP 383). With the GIL held.
pybind11::list StringsOf(const SampleSource& source, size_t field,
                         std::span<const uint64_t> sample_ids);
// Does the same for a batch's column: strings that were read with the images belong to the batch.
pybind11::list StringsOf(const Batch& batch, size_t column, const SampleSource& source);
// Converts strings to a list. `dtype`: kString or kBytes.
pybind11::list ListOf(std::span<const std::string_view> strings, DType dtype);

}  // namespace stoker::python
