// The reference for Inflater: zlib.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace stoker::png {

// Returns the first `total` bytes that zlib decompresses; nullopt if it refuses them, or what it
// reads after them before there is another byte, or if there are fewer. Does not verify the
// checksum at the end.
std::optional<std::vector<uint8_t>> InflateByZlib(std::span<const uint8_t> data, size_t total);

}  // namespace stoker::png
