// Converts Results to Python exceptions of the classes in stoker/_errors.py.
#pragma once

#include <utility>

#include "core/result/result.h"

namespace stoker::python {

// With the GIL held: throws an exception that pybind11 converts to the matching stoker.Error.
[[noreturn]] void Raise(const Error& error);

inline void Check(const Status& status) {
  if (!status.ok()) Raise(status.error());
}

template <typename T>
T Value(Result<T>&& result) {
  if (!result.ok()) Raise(result.error());
  return *std::move(result);
}

}  // namespace stoker::python
