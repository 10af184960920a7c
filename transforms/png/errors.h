// Errors about PNGs.
#pragma once

#include <cstdint>
#include <string>

#include "core/result/result.h"

namespace stoker::png {

Error Damaged(const std::string& cause, uint64_t offset);    // "damaged PNG: …"
Error Truncated(const std::string& cause, uint64_t offset);  // "truncated PNG: …"

}  // namespace stoker::png
