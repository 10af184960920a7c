// Compiled once for each instruction set, for its shifts and shuffles.
#include "transforms/png/symbols.h"

#include <array>
#include <bit>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "transforms/png/symbols.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace stoker::png {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

static_assert(std::endian::native == std::endian::little);  // Refill and Put copy numbers

// For a distance below 16, the shuffle that repeats the bytes of a match.
using Repeats = std::array<std::array<uint8_t, 16>, 16>;
constexpr Repeats MakeRepeats() {
  Repeats repeats{};
  for (size_t distance = 1; distance < 16; ++distance) {
    for (size_t i = 0; i < 16; ++i) repeats[distance][i] = static_cast<uint8_t>(i % distance);
  }
  return repeats;
}
alignas(16) constexpr Repeats kRepeats = MakeRepeats();

// Returns the end of the match. Writes up to 15 bytes after it.
HWY_INLINE uint8_t* CopyMatch(uint8_t* out, size_t distance, size_t length) {
#if HWY_TARGET == HWY_SCALAR
  return CopyMatchPlain(out, distance, length);
#else
  const hn::FixedTag<uint8_t, 16> d;
  const uint8_t* from = out - distance;
  uint8_t* const end = out + length;
  if (HWY_LIKELY(distance >= 16)) {
    for (; out < end; out += 16, from += 16) hn::StoreU(hn::LoadU(d, from), d, out);
    return end;
  }
  const auto repeated =
      hn::TableLookupBytes(hn::LoadU(d, from), hn::Load(d, kRepeats[distance].data()));
  const size_t step = 16 - 16 % distance;
  for (; out < end; out += step) hn::StoreU(repeated, d, out);
  return end;
#endif
}

// Giesen, "Reading bits in far too many ways", variant 4. Afterwards at least 56 bits are there.
HWY_INLINE void Refill(Stream& s) {
  uint64_t next;
  std::memcpy(&next, s.in, sizeof(next));
  s.bits |= next << s.left;
  s.in += (63 - s.left) >> 3;
  s.left |= 56;
}

HWY_INLINE void Drop(Stream& s, uint32_t entry) {
  s.bits >>= DroppedBits(entry);
  s.left -= DroppedBits(entry);
}

HWY_INLINE void Put(Stream& s, uint32_t entry) {
  Drop(s, entry);
  const auto literals = static_cast<uint16_t>(entry >> 16);
  std::memcpy(s.out, &literals, sizeof(literals));
  s.out += 1 + (entry / kPair & 1);
}

HWY_INLINE uint32_t TakeValue(Stream& s, uint32_t entry) {
  const uint32_t value = ValueOf(entry, s.bits);
  Drop(s, entry);
  return value;
}

SymbolsEnd Decode(const Codes& codes, const uint8_t* begin, const uint8_t* target, Stream& stream) {
  constexpr uint64_t kLiteralMask = (uint64_t{1} << kLiteralBits) - 1;
  const uint32_t* const literals = codes.literals.data();
  const uint32_t* const distances = codes.distances.data();
  const uint8_t* const last = stream.in_end - kSymbolInput;
  SymbolsEnd end = SymbolsEnd::kInputOrTarget;
  Stream s = stream;
  while (s.out < target && s.in <= last) {
    Refill(s);
    uint32_t entry = literals[s.bits & kLiteralMask];
    // Three literals of the first lookup take 33 bits, and a length at most 20.
    const auto put = [&] {
      Put(s, entry);
      entry = literals[s.bits & kLiteralMask];
    };
    if ((entry & kLiteral) != 0) {
      put();
      if ((entry & kLiteral) != 0) {
        put();
        if ((entry & kLiteral) != 0) {
          put();
          if ((entry & kLiteral) != 0) {
            Put(s, entry);
            continue;
          }
        }
      }
    }
    if (s.out >= target) break;  // damage after it is another call's, or LookAhead's
    if (HWY_UNLIKELY((entry & kSpecial) != 0)) {
      entry = FindEntry<kLiteralBits>(literals, s.bits);
      if ((entry & kLiteral) != 0) {
        Put(s, entry);
        continue;
      }
      if ((entry & kSpecial) != 0) {
        Drop(s, entry);
        end = (entry & kEndOfBlock) != 0 ? SymbolsEnd::kEndOfBlock : SymbolsEnd::kDamaged;
        break;
      }
    }
    const size_t length = TakeValue(s, entry);
    Refill(s);
    entry = FindEntry<kDistanceBits>(distances, s.bits);
    const size_t distance = TakeValue(s, entry);
    if (HWY_UNLIKELY((entry & kSpecial) != 0 || distance > static_cast<size_t>(s.out - begin))) {
      end = SymbolsEnd::kDamaged;
      break;
    }
    s.out = CopyMatch(s.out, distance, length);
  }
  stream = s;
  return end;
}

}  // namespace HWY_NAMESPACE
}  // namespace stoker::png
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker::png {

HWY_EXPORT(Decode);

SymbolsEnd DecodeSymbols(const Codes& codes, const uint8_t* begin, const uint8_t* target,
                         Stream& stream) {
  return HWY_DYNAMIC_DISPATCH(Decode)(codes, begin, target, stream);
}

}  // namespace stoker::png
#endif
