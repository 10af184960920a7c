// The MapFunction of stoker.Map: a Python function of whole batches.
#pragma once

#include <memory>

#include "engine/map/map_function.h"
#include "io/source/source.h"

namespace pybind11 {
class object;
}

namespace stoker::python {

// `map`: None, or (call, name, identity in states, threads, columns). `call` is a weak reference to
// a function of (given, columns, epoch, Batch::position, sample ids), which changes the columns in
// place and returns None, or an error message as bytes. `given`: for each column the column itself,
// the list of strings that it replaces, or None if the function adds it. The function adds columns
// with these names, the types of these arrays, and these row shapes. `source`: the loader's. The
// reference is weak,
// so that a function whose object has the loader does not keep itself alive: the loader's Python
// object keeps it. With the GIL held.
std::shared_ptr<const MapFunction> MapFunctionOf(const pybind11::object& map,
                                                 std::shared_ptr<const SampleSource> source);

}  // namespace stoker::python
