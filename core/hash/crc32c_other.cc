// CRC-32C on CPUs without code for their instructions.
#include "core/hash/crc32c.h"

namespace stoker {

std::optional<uint32_t> Crc32cByInstruction(std::span<const uint8_t> /*bytes*/,
                                            uint32_t /*before*/) {
  return std::nullopt;
}

std::optional<uint32_t> Crc32cByFolding(std::span<const uint8_t> /*bytes*/, uint32_t /*before*/) {
  return std::nullopt;
}

}  // namespace stoker
