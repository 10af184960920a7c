// CRC-32C with the instruction of SSE 4.2.
//
// The instruction takes three cycles and one can begin in each, so three parts of the bytes are
// summed at a time and joined by carry-less products, because a CRC is linear (Gopal et al., "Fast
// CRC Computation for iSCSI Polynomial Using CRC32 Instruction", Intel 2011).
#include <nmmintrin.h>
#include <wmmintrin.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#include "core/hash/crc32c.h"

namespace stoker {

namespace {

constexpr size_t kMaxPartWords = 128;  // of 8 bytes
constexpr size_t kMinBytes = 192;      // fewer are not worth joining

// For a number of words, x to the power of 33 less than their bits, modulo the polynomial, in the
// order of a CRC's state. A state times that power and x to the 33rd is the state with that many
// zeros after it; the instruction, for a product of 64 bits, multiplies by the latter.
constexpr std::array<uint32_t, 2 * kMaxPartWords + 1> MakePowers() {
  std::array<uint32_t, 2 * kMaxPartWords + 1> powers{};
  uint32_t power = uint32_t{1} << 31;
  for (int i = 0; i < 64 - 33; ++i) power >>= 1;
  for (size_t words = 1; words < powers.size(); ++words) {
    powers[words] = power;
    for (int i = 0; i < 8; ++i) power = StepOfCrc32c(power, 0);
  }
  return powers;
}

constexpr std::array<uint32_t, 2 * kMaxPartWords + 1> kPowers = MakePowers();

[[gnu::target("sse4.2,pclmul")]] uint64_t Shifted(uint64_t state, size_t words) {
  const __m128i product = _mm_clmulepi64_si128(_mm_cvtsi64_si128(static_cast<int64_t>(state)),
                                               _mm_cvtsi64_si128(kPowers[words]), 0);
  return _mm_crc32_u64(0, static_cast<uint64_t>(_mm_cvtsi128_si64(product)));
}

uint64_t EightFrom(const uint8_t* at) {
  uint64_t word = 0;
  std::memcpy(&word, at, sizeof(word));
  return word;
}

// Sums most of the bytes, and drops them.
[[gnu::target("sse4.2,pclmul")]] uint64_t SumParts(uint64_t state,
                                                   std::span<const uint8_t>& bytes) {
  while (bytes.size() >= kMinBytes) {
    const size_t words = std::min(bytes.size() / 24, kMaxPartWords), part = 8 * words;
    uint64_t second = 0, third = 0;
    for (const uint8_t* at = bytes.data(); at < bytes.data() + part; at += 8) {
      state = _mm_crc32_u64(state, EightFrom(at));
      second = _mm_crc32_u64(second, EightFrom(at + part));
      third = _mm_crc32_u64(third, EightFrom(at + 2 * part));
    }
    state = Shifted(state, 2 * words) ^ Shifted(second, words) ^ third;
    bytes = bytes.subspan(3 * part);
  }
  return state;
}

[[gnu::target("sse4.2")]] uint64_t Sum(uint64_t state, std::span<const uint8_t> bytes) {
  for (; bytes.size() >= 8; bytes = bytes.subspan(8)) {
    state = _mm_crc32_u64(state, EightFrom(bytes.data()));
  }
  for (const uint8_t byte : bytes) state = _mm_crc32_u8(static_cast<uint32_t>(state), byte);
  return state;
}

}  // namespace

std::optional<uint32_t> Crc32cByInstruction(std::span<const uint8_t> bytes, uint32_t before) {
  if (__builtin_cpu_supports("sse4.2") == 0) return std::nullopt;
  uint64_t state = static_cast<uint32_t>(~before);
  if (__builtin_cpu_supports("pclmul") != 0) state = SumParts(state, bytes);
  return ~static_cast<uint32_t>(Sum(state, bytes));
}

}  // namespace stoker
