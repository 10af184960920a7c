// Results become Python's exceptions. The classes are those of stoker/_errors.py.
#pragma once

#include <utility>

#include "core/result.h"

namespace stoker::python {

// With the GIL held: throws what pybind11 turns into the stoker.Error that fits.
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
