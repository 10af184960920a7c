// Makes columns from the program's memory: NumPy arrays, and lists of strings.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "io/memory/arrays.h"
#include "io/memory/string_rows.h"

namespace pybind11 {
class array;
class dict;
class object;
}  // namespace pybind11

namespace stoker::python {

// Returns a view of an array. Precondition: each row is dense and the type is supported.
ArrayColumn ColumnOf(std::string name, const pybind11::array& array);

// Keeps arrays alive. The last loader may be destroyed on any thread, without the GIL: the arrays
// are released later by Python.
std::shared_ptr<void> OwnerOf(pybind11::object arrays);

// Owns the memory of columns.
struct Beside {
  std::shared_ptr<void> arrays;
  std::deque<StringRows> strings;
};

// `columns`: arrays, lists of str or of bytes, or tuples of what describes a column of objects
// (Objects.native in stoker/_object_columns.py), by name and in order. `beside` owns their memory.
std::vector<ArrayColumn> ColumnsOf(const pybind11::dict& columns, Beside& beside);

}  // namespace stoker::python
