// CRC-32C (Castagnoli; RFC 3720): the checksum of iSCSI, ext4 and TFRecord files.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace stoker {

// Returns the CRC of `bytes`, appended to bytes with the CRC `before`. Uses the CPU's instructions
// if there are any.
uint32_t Crc32c(std::span<const uint8_t> bytes, uint32_t before = 0);

// Crc32c with a table, byte by byte: the reference.
uint32_t Crc32cPlain(std::span<const uint8_t> bytes, uint32_t before = 0);

// Crc32c with the CPU's instruction; nullopt if the CPU has none.
std::optional<uint32_t> Crc32cByInstruction(std::span<const uint8_t> bytes, uint32_t before = 0);

// Crc32c with vectors of carry-less products, for many bytes; nullopt if the CPU has none.
std::optional<uint32_t> Crc32cByFolding(std::span<const uint8_t> bytes, uint32_t before = 0);

// One step of the reference, for building tables: `state` is a CRC's complement.
constexpr uint32_t StepOfCrc32c(uint32_t state, uint8_t byte) {
  constexpr uint32_t kPolynomial = 0x82F63B78;  // its bits reversed
  state ^= byte;
  for (int bit = 0; bit < 8; ++bit) state = state >> 1 ^ ((state & 1) != 0 ? kPolynomial : 0);
  return state;
}

}  // namespace stoker
