// CRC-32C by carry-less products of vectors (AVX-512F and VPCLMULQDQ).
//
// A block of the message is a polynomial. Multiplied by a power of x, modulo the CRC's polynomial,
// it can be added to the block after it instead, which leaves the CRC unchanged (Gopal et al.,
// "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction", Intel 2009). So a
// message is folded into one block, whose CRC is computed like that of any other 256 bytes.
#include <immintrin.h>

#include <array>
#include <cstddef>

#include "core/hash/crc32c.h"

namespace stoker {

namespace {

constexpr size_t kVectorBytes = 64;
constexpr size_t kFoldedBytes = 4 * kVectorBytes;  // a block: products of four vectors overlap

// Returns x to the `power`, modulo the polynomial. Bits are in the order of a CRC's state, from the
// highest power at bit 0 on, in the upper half: a product of two such numbers lies one bit lower
// than its place, so the product has one power more.
constexpr int64_t PowerOfX(int power) {
  constexpr uint32_t kPolynomial = 0x82F63B78;  // its bits reversed
  uint32_t state = uint32_t{1} << 31;
  for (int i = 0; i < power; ++i) state = state >> 1 ^ ((state & 1) != 0 ? kPolynomial : 0);
  return static_cast<int64_t>(uint64_t{state} << 32);
}

// These constants move the halves of 16 bytes to the next block. The first half has the higher
// powers.
constexpr int kFoldedBits = 8 * kFoldedBytes;
constexpr int64_t kMoveFirst = PowerOfX(kFoldedBits + 64 - 1);
constexpr int64_t kMoveSecond = PowerOfX(kFoldedBits - 1);

// Returns the bytes at `next`, plus `sum` moved to them.
[[gnu::target("avx512f,vpclmulqdq"), gnu::always_inline]] inline __m512i Fold(__m512i sum,
                                                                              __m512i powers,
                                                                              const uint8_t* next) {
  constexpr int kXorOfThree = 0x96;
  return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(sum, powers, 0x00),
                                   _mm512_clmulepi64_epi128(sum, powers, 0x11),
                                   _mm512_loadu_si512(next), kXorOfThree);
}

// Folds whole blocks, at least one, into one block.
[[gnu::target("avx512f,vpclmulqdq")]] void Fold(std::span<const uint8_t> blocks, uint32_t state,
                                                std::span<uint8_t, kFoldedBytes> folded) {
  const uint8_t* at = blocks.data();
  const uint8_t* const end = at + blocks.size();
  const __m512i powers = _mm512_set4_epi64(kMoveSecond, kMoveFirst, kMoveSecond, kMoveFirst);
  // The state left by the earlier bytes is added to the first bytes.
  const __m512i before = _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(state)));
  __m512i first = _mm512_xor_si512(_mm512_loadu_si512(at), before);
  __m512i second = _mm512_loadu_si512(at + kVectorBytes);
  __m512i third = _mm512_loadu_si512(at + 2 * kVectorBytes);
  __m512i fourth = _mm512_loadu_si512(at + 3 * kVectorBytes);
  for (at += kFoldedBytes; at != end; at += kFoldedBytes) {
    first = Fold(first, powers, at);
    second = Fold(second, powers, at + kVectorBytes);
    third = Fold(third, powers, at + 2 * kVectorBytes);
    fourth = Fold(fourth, powers, at + 3 * kVectorBytes);
  }
  _mm512_storeu_si512(folded.data(), first);
  _mm512_storeu_si512(folded.data() + kVectorBytes, second);
  _mm512_storeu_si512(folded.data() + 2 * kVectorBytes, third);
  _mm512_storeu_si512(folded.data() + 3 * kVectorBytes, fourth);
}

}  // namespace

std::optional<uint32_t> Crc32cByFolding(std::span<const uint8_t> bytes, uint32_t before) {
  if (__builtin_cpu_supports("avx512f") == 0 || __builtin_cpu_supports("vpclmulqdq") == 0) {
    return std::nullopt;
  }
  const size_t whole = bytes.size() / kFoldedBytes * kFoldedBytes;
  if (whole == 0) return Crc32cByInstruction(bytes, before);
  std::array<uint8_t, kFoldedBytes> folded{};
  Fold(bytes.first(whole), ~before, folded);
  // The block includes the state, so the CRC starts from zero, whose complement is passed.
  const uint32_t crc = Crc32c(folded, ~uint32_t{0});
  return Crc32c(bytes.subspan(whole), crc);
}

}  // namespace stoker
