// Opens an Arrow IPC file from untrusted bytes.
#pragma once

#include <cstdint>
#include <span>

namespace stoker::testing {

// Aborts if a promise of io/arrow/arrow.h is broken: images lie in the file, each has a row of
// each column, and errors name the file.
void OpenFuzzedArrow(std::span<const uint8_t> bytes);

}  // namespace stoker::testing
