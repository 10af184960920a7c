// Numbers of bytes as people write them: "8GiB", "500MB".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stoker {

// Parses digits and a unit: B, kB, MB, GB, TB (powers of 1000), KiB, MiB, GiB or TiB (powers of
// 1024). Returns nullopt for other text, and for 2^63 bytes and more.
std::optional<uint64_t> ParseByteSize(std::string_view text);

// Returns the number with the largest unit that divides it, which ParseByteSize reads.
std::string ByteSizeText(uint64_t bytes);

}  // namespace stoker
