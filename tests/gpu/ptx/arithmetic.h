// What the instructions of PTX compute (NVIDIA's "PTX ISA"), for instructions.py. Registers hold
// bits: As reads a value from them, and Bits makes them of a result.
#pragma once

#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "core/numbers/half.h"

namespace stoker::testing::ptx {

// ---- Registers and memory

template <typename T>
T As(std::unsigned_integral auto bits) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::bit_cast<T>(bits);
  } else {
    return static_cast<T>(bits);
  }
}

template <typename T>
T Bits(T value) requires(!std::is_floating_point_v<T>) {
  return value;
}
// Every NaN that a device computes is the same.
inline uint32_t Bits(float value) {
  return std::isnan(value) ? 0x7fffffff : std::bit_cast<uint32_t>(value);
}
inline uint64_t Bits(double value) {
  return std::isnan(value) ? 0x7fffffffffffffff : std::bit_cast<uint64_t>(value);
}

// What a register contains before it is written. For predicates see translate.py.
template <typename T>
T Garbage() {
  return static_cast<T>(0xb5b5b5b5b5b5b5b5);
}

inline uint64_t Address(const void* memory) { return reinterpret_cast<uintptr_t>(memory); }
inline uint64_t Address(uint64_t address) { return address; }

template <typename T>
T Load(uint64_t address) {
  return *reinterpret_cast<const T*>(address);
}
template <typename T>
void Store(uint64_t address, T value) {
  *reinterpret_cast<T*>(address) = value;
}

// ---- Integers, which wrap

// As many bits, or more, in which no operator overflows with a sign.
template <typename T>
using Modular = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

template <typename T>
T Add(T a, T b) {
  return static_cast<T>(Modular<T>(a) + Modular<T>(b));
}
template <typename T>
T Subtract(T a, T b) {
  return static_cast<T>(Modular<T>(a) - Modular<T>(b));
}
template <typename T>
T Multiply(T a, T b) {
  return static_cast<T>(Modular<T>(a) * Modular<T>(b));
}
template <typename T>
T MultiplyHigh(T a, T b) {
  using Both = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
  return static_cast<T>((Both{a} * Both{b}) >> (8 * sizeof(T)));
}
template <typename T>
T MultiplyAdd(T a, T b, T c) {
  return Add<T>(Multiply<T>(a, b), c);
}
// The results of a division by zero are not specified; these are not those of zero by accident.
template <typename T>
T Divide(T a, T b) {
  return b == 0 ? Garbage<T>() : static_cast<T>(a / b);
}
template <typename T>
T Remainder(T a, T b) {
  return b == 0 ? Garbage<T>() : static_cast<T>(a % b);
}
template <typename T>
T Least(T a, T b) {
  return a < b ? a : b;
}
template <typename T>
T Most(T a, T b) {
  return a > b ? a : b;
}
template <typename T>
T Negate(T a) {
  return Subtract<T>(0, a);
}
template <typename T>
T Absolute(T a) {
  return a < 0 ? Negate(a) : a;
}
// a's lower and upper half, with sign, times b's two lowest bytes, added to c.
inline uint32_t DotOfTwo(uint32_t a, uint32_t b, uint32_t c) {
  const int32_t lower = static_cast<int16_t>(a), upper = static_cast<int16_t>(a >> 16);
  return c + static_cast<uint32_t>(lower * static_cast<int32_t>(b & 0xff)) +
         static_cast<uint32_t>(upper * static_cast<int32_t>(b >> 8 & 0xff));
}

// ---- Floating point: rounded to nearest, ties to even, with subnormal numbers

template <typename T>
T AddFloats(T a, T b) {
  return a + b;
}
template <typename T>
T SubtractFloats(T a, T b) {
  return a - b;
}
template <typename T>
T MultiplyFloats(T a, T b) {
  return a * b;
}
template <typename T>
T DivideFloats(T a, T b) {
  return a / b;
}
template <typename T>
T FusedMultiplyAdd(T a, T b, T c) {
  return std::fma(a, b, c);
}
template <typename T>
T SquareRoot(T a) {
  return std::sqrt(a);
}
template <typename T>
T NegateFloat(T a) {
  return -a;
}
template <typename T>
T AbsoluteFloat(T a) {
  return std::abs(a);
}

// ---- Bits

template <typename T>
T And(T a, T b) {
  return static_cast<T>(a & b);
}
template <typename T>
T Or(T a, T b) {
  return static_cast<T>(a | b);
}
template <typename T>
T Xor(T a, T b) {
  return static_cast<T>(a ^ b);
}
template <typename T>
T Not(T a) {
  return static_cast<T>(~a);
}
template <typename T>
T ShiftLeft(T a, uint32_t bits) {
  return bits < 8 * sizeof(T) ? static_cast<T>(Modular<T>(a) << bits) : T{0};
}
template <typename T>
T ShiftRight(T a, uint32_t bits) {
  if (bits < 8 * sizeof(T)) return static_cast<T>(a >> bits);
  return std::is_signed_v<T> && a < 0 ? static_cast<T>(-1) : T{0};
}
inline uint64_t Joined(uint32_t lower, uint32_t upper) { return uint64_t{upper} << 32 | lower; }
inline uint32_t FunnelLeft(uint32_t lower, uint32_t upper, uint32_t bits) {
  return static_cast<uint32_t>(Joined(lower, upper) << bits % 32 >> 32);
}
inline uint32_t FunnelRight(uint32_t lower, uint32_t upper, uint32_t bits) {
  return static_cast<uint32_t>(Joined(lower, upper) >> bits % 32);
}
template <typename T>
T LowestOnes(uint32_t bits) {
  return bits < 8 * sizeof(T) ? static_cast<T>((T{1} << bits) - 1) : static_cast<T>(~T{0});
}
// `bits` bits of `from` at bit `at` of `to`. Only the lowest bytes of both numbers count.
template <typename T>
T Insert(T from, T to, uint32_t at, uint32_t bits) {
  const T mask = ShiftLeft<T>(LowestOnes<T>(bits & 0xff), at & 0xff);
  return static_cast<T>((ShiftLeft<T>(from, at & 0xff) & mask) | (to & ~mask));
}
template <typename T>
T Extract(T from, uint32_t at, uint32_t bits) {
  return static_cast<T>(ShiftRight<T>(from, at & 0xff) & LowestOnes<T>(bits & 0xff));
}
// Four of eight bytes, chosen by four bits each: which one, and whether its sign is wanted instead.
inline uint32_t Permute(uint32_t lower, uint32_t upper, uint32_t chosen) {
  uint32_t result = 0;
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t which = chosen >> (4 * i);
    uint32_t byte = Joined(lower, upper) >> (8 * (which & 7)) & 0xff;
    if ((which & 8) != 0) byte = (byte & 0x80) != 0 ? 0xff : 0;
    result |= byte << (8 * i);
  }
  return result;
}
inline uint32_t LeadingZeros(uint32_t a) { return static_cast<uint32_t>(std::countl_zero(a)); }
inline uint32_t Ones(uint32_t a) { return static_cast<uint32_t>(std::popcount(a)); }

// ---- Predicates and comparisons

inline bool NotTrue(bool a) { return !a; }
inline bool BothTrue(bool a, bool b) { return a && b; }
inline bool EitherTrue(bool a, bool b) { return a || b; }
inline bool OneTrue(bool a, bool b) { return a != b; }

template <typename T>
bool Equal(T a, T b) {
  return a == b;
}
template <typename T>
bool Less(T a, T b) {
  return a < b;
}
template <typename T>
bool Greater(T a, T b) {
  return a > b;
}
template <typename T>
bool Different(T a, T b) {
  return a < b || a > b;  // false if either is NaN
}
template <typename T>
bool LessOrEqual(T a, T b) {
  return a <= b;
}
template <typename T>
bool GreaterOrEqual(T a, T b) {
  return a >= b;
}
template <typename T>
bool Ordered(T a, T b) {
  return a == a && b == b;
}

// ---- Conversions

template <typename To, typename From>
To Convert(From value) {
  return static_cast<To>(value);
}
template <typename T>
T Nearest(T value) {
  return std::nearbyint(value);
}
// What is too large or too small becomes the nearest number that there is. NaN becomes 0, or, from
// 64 bits, the number whose highest bit alone is set.
template <typename To, typename From>
To TowardsZero(From value) {
  using Limits = std::numeric_limits<To>;
  if (std::isnan(value)) return sizeof(From) == 8 ? static_cast<To>(0x80000000) : To{0};
  const double whole = std::trunc(double{value});  // exact, as are all numbers of 32 bits
  if (whole <= double{Limits::min()}) return Limits::min();
  return whole >= double{Limits::max()} ? Limits::max() : static_cast<To>(whole);
}

inline constexpr uint16_t kNan16 = 0x7fff;
inline uint16_t Float16(float value) {
  return std::isnan(value) ? kNan16 : stoker::Float16Bits(value);
}
inline uint16_t BFloat16(float value) {
  return std::isnan(value) ? kNan16 : stoker::BFloat16Bits(value);
}
inline uint32_t Float16s(float upper, float lower) {
  return uint32_t{Float16(upper)} << 16 | Float16(lower);
}
inline uint32_t BFloat16s(float upper, float lower) {
  return uint32_t{BFloat16(upper)} << 16 | BFloat16(lower);
}
inline float Float16Value(uint16_t bits) { return stoker::Float16Value(bits); }

}  // namespace stoker::testing::ptx
