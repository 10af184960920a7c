// Errors about PNGs.
#pragma once

#include <cstdint>
#include <string>

#include "core/result/result.h"

namespace stoker::png {

Error Damaged(const std::string& cause, uint64_t offset);    // "damaged PNG: …"
Error Truncated(const std::string& cause, uint64_t offset);  // "truncated PNG: …"

// Translates an error of libspng; `code` is not SPNG_OK.
Error LibraryError(int code, uint64_t offset);

}  // namespace stoker::png
