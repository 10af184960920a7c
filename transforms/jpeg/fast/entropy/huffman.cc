// Compiled once for each instruction set.
#include "transforms/jpeg/fast/entropy/huffman.h"

#include <cstring>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "transforms/jpeg/fast/entropy/huffman.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace stoker::jpeg {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Entries as integers: written as vectors, which may alias, and read as structures.
using DcWord = uint32_t;
using AcWord = uint64_t;
using SkipWord = uint16_t;

// Writes whole vectors, up to kTableSlack entries too many: tables are filled from their start, and
// later entries overwrite the excess. (Left to the compiler, g++ 12 makes a prologue and an
// epilogue for each run of a few entries, which took twice as long.)
template <typename Word>
using Vectors = hn::CappedTag<Word, 32 / sizeof(Word)>;
static_assert(kTableSlack * sizeof(uint16_t) >= 32);

// AcEntry as one integer, so that two symbols can be joined by addition. The number of bits after
// the value is negative, and added to kAllBits.
uint64_t AcBits(int bits, int first_step, int step, int size, int first_value) {
  return (static_cast<uint64_t>(bits) | static_cast<uint64_t>(first_step) << 8 |
          static_cast<uint64_t>(step) << 16 |
          static_cast<uint64_t>(static_cast<uint8_t>(first_value)) << 24 |
          static_cast<uint64_t>(size) << 40 |
          static_cast<uint64_t>(static_cast<uint16_t>(1 - (1 << size))) << 48) -
         (static_cast<uint64_t>(bits) << 32);
}
constexpr uint64_t kAllBits = uint64_t{64} << 32;

constexpr uint16_t SkipBits(int bits, int step) { return static_cast<uint16_t>(bits | step << 8); }

int StepOf(int symbol) { return symbol == 0 ? kEndOfBlock : (symbol >> 4) + 1; }

// Calls fill(symbol, length, first, count) for each code of at most `window` bits, where the
// `count` windows from `first` begin with that code. Returns how many windows begin with any code.
template <typename Fill>
HWY_INLINE size_t ForEachCode(HuffmanSpec spec, int window, const Fill& fill) {
  const uint8_t* symbol = spec + 16;
  size_t at = 0;
  for (int length = 1; length <= window; ++length) {
    const size_t count = size_t{1} << (window - length);
    for (int i = 0; i < spec[length - 1]; ++i, at += count) fill(*symbol++, length, at, count);
  }
  return at;
}

template <typename Word>
HWY_INLINE void Fill(Word* to, size_t count, std::type_identity_t<Word> value) {
  const Vectors<Word> d;
  const auto v = hn::Set(d, value);
  for (size_t i = 0; i < count; i += hn::Lanes(d)) hn::StoreU(v, d, to + i);
}

void FillDc(HuffmanSpec spec, DcTable& out) {
  auto* const table = reinterpret_cast<DcWord*>(out.entry.data());
  const size_t used = ForEachCode(
      spec, kDcWindow, [table](int symbol, int length, size_t first, size_t count) HWY_ATTR {
        const auto entry = static_cast<uint32_t>((length + symbol) | symbol << 8 | length << 16);
        Fill(table + first, count, entry);
      });
  Fill(table + used, (size_t{1} << kDcWindow) - used, uint32_t{0});
}

// The symbols that may follow the first one: level r has an entry for each r bits that begin with a
// complete code; the first used[r] entries are valid.
struct SecondSymbols {
  alignas(64) uint64_t entry[(1 << kAcWindow) + kTableSlack];
  size_t used[kAcWindow];

  uint64_t* level(int r) { return entry + (size_t{1} << r); }
};

void FillSecondSymbols(HuffmanSpec spec, SecondSymbols& second) {
  for (int r = 0; r < kAcWindow; ++r) {
    uint64_t* const level = second.level(r);
    second.used[r] =
        ForEachCode(spec, r, [level](int symbol, int length, size_t first, size_t count) HWY_ATTR {
          const int size = symbol & 15;
          Fill(level + first, count, AcBits(length + size, 0, StepOf(symbol), size, 0));
        });
  }
}

// Fills all windows that begin with one symbol: every value it can have, followed by every second
// symbol that still fits.
HWY_INLINE void FillSymbol(int symbol, int length, SecondSymbols& second, AcWord* to,
                           size_t count) {
  const int size = symbol & 15, step = StepOf(symbol), bits = length + size;
  const uint64_t alone = AcBits(bits, step, step, size, 0) + kAllBits;
  const int left = kAcWindow - bits;
  if (symbol == 0 || left < 0 || second.used[left] == 0 || size > kMaxFirstSize) {
    return Fill(to, count, alone);
  }
  const size_t windows = size_t{1} << left, used = second.used[left];
  const uint64_t* const level = second.level(left);
  for (int x = 0; x < 1 << size; ++x, to += windows) {
    const int value = size == 0 ? 0 : x < 1 << (size - 1) ? x - (1 << size) + 1 : x;
    // The second symbol adds its own size and bias.
    const uint64_t first = AcBits(bits, step, step, 0, value) + kAllBits;
    const Vectors<uint64_t> d;
    for (size_t i = 0; i < used; i += hn::Lanes(d)) {
      hn::StoreU(hn::Add(hn::Set(d, first), hn::LoadU(d, level + i)), d, to + i);
    }
    Fill(to + used, windows - used, alone);
  }
}

void FillAc(HuffmanSpec spec, AcTable& out) {
  auto* const table = reinterpret_cast<AcWord*>(out.entry.data());
  SecondSymbols second;
  FillSecondSymbols(spec, second);
  const size_t used =
      ForEachCode(spec, kAcWindow,
                  [table, &second](int symbol, int length, size_t first, size_t count)
                      HWY_ATTR { FillSymbol(symbol, length, second, table + first, count); });
  const uint64_t none = AcBits(0, kLongCode, kLongCode, 0, 0) + kAllBits;
  Fill(table + used, (size_t{1} << kAcWindow) - used, none);
}

// Fills one level of skip entries, of `window` bits, from the levels below it (`level` + (1 << r)).
HWY_INLINE void FillSkipLevel(HuffmanSpec spec, int window, const uint16_t* levels, SkipWord* to,
                              uint16_t none) {
  const auto fill = [=](int symbol, int length, size_t first, size_t count) HWY_ATTR {
    const int bits = length + (symbol & 15), step = StepOf(symbol);
    const uint16_t own = SkipBits(bits, step);
    SkipWord* out = to + first;
    if (symbol == 0 || bits >= window) return Fill(out, count, own);
    const size_t windows = size_t{1} << (window - bits);
    const uint16_t* const rest = levels + windows;
    // Adds the following symbols as a whole, or none if they would leave the block. If they end the
    // block, its run is what remains without them.
    const Vectors<uint16_t> d;
    const auto end = hn::Set(d, uint16_t{kEndOfBlock}), added = hn::Set(d, own);
    const auto most = hn::Set(d, static_cast<uint16_t>(63 - step));
    for (size_t i = 0; i < windows; i += hn::Lanes(d)) {
      const auto next = hn::LoadU(d, rest + i), next_step = hn::ShiftRight<8>(next);
      const auto run = hn::Min(next_step, hn::Sub(next_step, end));
      const auto fits = hn::Eq(hn::Min(run, most), run);
      hn::StoreU(hn::Add(added, hn::IfThenElseZero(fits, next)), d, out + i);
    }
    // The same for every value that the symbol can have.
    for (size_t done = windows; done < count; done *= 2) {
      for (size_t i = 0; i < done; i += hn::Lanes(d)) {
        hn::StoreU(hn::LoadU(d, out + i), d, out + done + i);
      }
    }
  };
  const size_t used = ForEachCode(spec, window, fill);
  Fill(to + used, (size_t{1} << window) - used, none);
}

void FillSkip(HuffmanSpec spec, SkipTable& out) {
  auto* const table = reinterpret_cast<SkipWord*>(out.entry.data());
  alignas(64) uint16_t levels[(1 << kSkipWindow) + kTableSlack];
  for (int r = 0; r < kSkipWindow; ++r) {
    FillSkipLevel(spec, r, levels, levels + (size_t{1} << r), 0);
  }
  FillSkipLevel(spec, kSkipWindow, levels, table, SkipBits(0, kLongCode));
}

}  // namespace HWY_NAMESPACE
}  // namespace stoker::jpeg
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker::jpeg {

HWY_EXPORT(FillDc);
HWY_EXPORT(FillAc);
HWY_EXPORT(FillSkip);

// Canonical codes (T.81, C.2): codes of one length are consecutive, and all ones is never used.
bool FillLongCodes(HuffmanSpec spec, LongCodes& codes) {
  int code = 0, index = 0;
  for (int length = 1; length <= 16; ++length) {
    const auto at = static_cast<size_t>(length);
    codes.offset[at] = index - code;
    code += spec[length - 1];
    index += spec[length - 1];
    codes.limit[at] = code << (16 - length);
    if (spec[length - 1] != 0 && code >= 1 << length) return false;
    code <<= 1;
  }
  std::memcpy(codes.symbol.data(), spec + 16, static_cast<size_t>(index));
  return true;
}

namespace {

int CountOf(HuffmanSpec spec) {
  int count = 0;
  for (int i = 0; i < 16; ++i) count += spec[i];
  return count;
}

}  // namespace

bool BuildDcTable(HuffmanSpec spec, DcTable& table) {
  if (!FillLongCodes(spec, table.codes)) return false;
  const int count = CountOf(spec);
  for (int i = 0; i < count; ++i) {
    if (spec[16 + i] > kMaxDcSize) return false;
  }
  HWY_DYNAMIC_DISPATCH(FillDc)(spec, table);
  return true;
}

bool BuildAcTable(HuffmanSpec spec, AcTable& table) {
  if (!FillLongCodes(spec, table.codes)) return false;
  const int count = CountOf(spec);
  for (int i = 0; i < count; ++i) {
    const int symbol = spec[16 + i], size = symbol & 15;
    if (size > kMaxAcSize || (size == 0 && symbol != 0x00 && symbol != 0xF0)) return false;
  }
  HWY_DYNAMIC_DISPATCH(FillAc)(spec, table);
  return true;
}

void BuildSkipTable(HuffmanSpec spec, SkipTable& table) {
  HWY_DYNAMIC_DISPATCH(FillSkip)(spec, table);
}

}  // namespace stoker::jpeg
#endif
