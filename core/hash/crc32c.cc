#include "core/hash/crc32c.h"

#include <array>
#include <cstddef>

namespace stoker {

namespace {

constexpr std::array<uint32_t, 256> MakeCrc32cTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < table.size(); ++byte) {
    table[byte] = StepOfCrc32c(0, static_cast<uint8_t>(byte));
  }
  return table;
}

constexpr std::array<uint32_t, 256> kCrc32cTable = MakeCrc32cTable();

}  // namespace

uint32_t Crc32c(std::span<const uint8_t> bytes, uint32_t before) {
  constexpr size_t kManyBytes = 1024;
  if (bytes.size() >= kManyBytes) {
    if (const std::optional<uint32_t> crc = Crc32cByFolding(bytes, before)) return *crc;
  }
  if (const std::optional<uint32_t> crc = Crc32cByInstruction(bytes, before)) return *crc;
  return Crc32cPlain(bytes, before);
}

uint32_t Crc32cPlain(std::span<const uint8_t> bytes, uint32_t before) {
  uint32_t state = ~before;
  for (const uint8_t byte : bytes) state = state >> 8 ^ kCrc32cTable[(state ^ byte) & 255];
  return ~state;
}

}  // namespace stoker
