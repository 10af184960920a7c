// Compiled once for each instruction set up to AVX2, with which BMI2 comes: it packs a block's
// words of a quad in one instruction.
#include "transforms/packed/pack_run.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "core/batch/packed_widths.h"
#include "transforms/jpeg/fast/entropy/entropy.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "transforms/packed/pack_run.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#ifndef STOKER_TRANSFORMS_PACKED_PACK_RUN_CC
#define STOKER_TRANSFORMS_PACKED_PACK_RUN_CC
namespace stoker::packed {
namespace {

constexpr size_t kNeeds = kMaxWidth + 1;

// Returns the tuple of widths for each combination of widths that a quad's words need: the first
// one with the fewest bits that has room for them. The index is ((need[0] * kNeeds + need[1]) *
// kNeeds + …
std::vector<uint8_t> MakeTuples() {
  std::vector<uint8_t> tuples(kNeeds * kNeeds * kNeeds * kNeeds);
  for (size_t i = 0; i < tuples.size(); ++i) {
    const size_t need[4] = {i / (kNeeds * kNeeds * kNeeds), i / (kNeeds * kNeeds) % kNeeds,
                            i / kNeeds % kNeeds, i % kNeeds};
    int fewest = 4 * kMaxWidth + 1;
    for (size_t tuple = 0; tuple < kTuples; ++tuple) {
      const uint8_t* const w = kWidths[tuple];
      const int bits = w[0] + w[1] + w[2] + w[3];
      const bool covers = w[0] >= need[0] && w[1] >= need[1] && w[2] >= need[2] && w[3] >= need[3];
      if (!covers || bits >= fewest) continue;
      fewest = bits;
      tuples[i] = static_cast<uint8_t>(tuple);
    }
  }
  return tuples;
}

// The bits of a block's words of a quad, 16 a word, that a tuple keeps.
constexpr std::array<uint64_t, kTuples> MakeKept() {
  std::array<uint64_t, kTuples> kept{};
  for (size_t tuple = 0; tuple < kTuples; ++tuple) {
    for (int k = 0; k < 4; ++k) {
      kept[tuple] |= ((uint64_t{1} << kWidths[tuple][k]) - 1) << (16 * k);
    }
  }
  return kept;
}
constexpr std::array<uint64_t, kTuples> kKept = MakeKept();

// Appends numbers of bits; may write kPackSlack bytes after them.
class BitWriter {
 public:
  explicit BitWriter(uint8_t* to) : next_(to) {}

  // `bits` has no others above the lowest `count`, at most 56.
  void Put(uint64_t bits, unsigned count) {
    bits_ |= bits << count_;
    count_ += count;
    std::memcpy(next_, &bits_, sizeof(bits_));
    next_ += count_ / 8;
    bits_ >>= count_ / 8 * 8;
    count_ %= 8;
  }
  uint8_t* next() const { return next_; }

 private:
  uint8_t* next_;
  uint64_t bits_ = 0;
  unsigned count_ = 0;
};

// Returns a number with as many bits as `word` needs in two's complement, 0 for 0. Such numbers may
// be combined by OR.
uint16_t Extent(int16_t word) {
  const auto size = static_cast<uint16_t>(word ^ (word >> 15));
  return static_cast<uint16_t>(2 * size | (word != 0 ? 1 : 0));
}

}  // namespace
}  // namespace stoker::packed
#endif  // STOKER_TRANSFORMS_PACKED_PACK_RUN_CC

HWY_BEFORE_NAMESPACE();
namespace stoker::packed {
namespace HWY_NAMESPACE {

// A group's words, 64 bits for each block of each quad, in pairs of quads that share their rows.
struct GroupWords {
  alignas(64) uint64_t pair[kQuads / 2][kGroupBlocks][2];

  const uint64_t* Quad(size_t quad) const { return &pair[quad / 2][0][quad % 2]; }
};

// The width that each of a block's words of each quad needs, for all four blocks. Returns the
// largest.
using Needs = std::array<uint8_t, 4 * kQuads>;

#if HWY_TARGET == HWY_SCALAR

int Arrange(const int16_t* group, GroupWords& words, Needs& needs) {
  uint16_t all = 0;
  for (size_t quad = 0; quad < kQuads; ++quad) {
    uint16_t extent[4] = {};
    for (size_t block = 0; block < kGroupBlocks; ++block) {
      uint64_t four = 0;
      for (size_t k = 0; k < 4; ++k) {
        const int at = CoefficientOf(static_cast<int>(quad), static_cast<int>(k));
        const int16_t word =
            at == 0 ? int16_t{0}
                    : group[at / 8 * jpeg::kGroupRow + at % 8 + 8 * static_cast<int>(block)];
        four |= uint64_t{static_cast<uint16_t>(word)} << (16 * k);
        extent[k] |= Extent(word);
      }
      words.pair[quad / 2][block][quad % 2] = four;
    }
    for (size_t k = 0; k < 4; ++k) {
      all |= extent[k];
      needs[4 * quad + k] = static_cast<uint8_t>(std::bit_width(extent[k]));
    }
  }
  return std::bit_width(all);
}

#else
namespace hn = hwy::HWY_NAMESPACE;

// One row of one block.
using Row = hn::CappedTag<int16_t, 8>;
using Extents = hn::RebindToUnsigned<Row>;
using Four = hn::CappedTag<int32_t, 4>;

// std::bit_width of each lane, from the exponents of floating-point numbers.
HWY_INLINE hn::Vec<Four> BitWidths(hn::Vec<hn::Half<Extents>> extents) {
  const Four d;
  const auto numbers = hn::ConvertTo(hn::RebindToFloat<Four>(), hn::PromoteTo(d, extents));
  const auto exponents = hn::ShiftRight<23>(hn::BitCast(d, numbers));
  return hn::Max(hn::Sub(exponents, hn::Set(d, 126)), hn::Zero(d));
}

int Arrange(const int16_t* group, GroupWords& words, Needs& needs) {
  const Row d;
  const Extents du;
  const hn::Repartition<uint8_t, Row> d8;
  const hn::Half<Extents> half;
  alignas(16) static constexpr uint8_t kEveryOther[16] = {0, 1, 2, 3, 8,  9,  10, 11,
                                                          4, 5, 6, 7, 12, 13, 14, 15};
  alignas(16) static constexpr int16_t kNoDc[8] = {0, -1, -1, -1, -1, -1, -1, -1};
  auto all = hn::Zero(du);
  for (size_t pair = 0; pair < kQuads / 2; ++pair) {
    const auto& rows = kPairs[pair / 2];
    const auto keep = pair == 0 ? hn::Load(d, kNoDc) : hn::Set(d, -1);
    auto extent = hn::Zero(du);
    for (size_t block = 0; block < kGroupBlocks; ++block) {
      const auto a = hn::Load(d, group + rows[0] * jpeg::kGroupRow + 8 * block);
      const auto b = hn::Load(d, group + rows[1] * jpeg::kGroupRow + 8 * block);
      const auto both = pair % 2 == 0 ? hn::InterleaveLower(d, a, b) : hn::InterleaveUpper(d, a, b);
      const auto v = hn::And(keep, hn::BitCast(d, hn::TableLookupBytes(hn::BitCast(d8, both),
                                                                       hn::Load(d8, kEveryOther))));
      hn::Store(v, d, reinterpret_cast<int16_t*>(words.pair[pair][block]));
      const auto size = hn::BitCast(du, hn::Xor(v, hn::ShiftRight<15>(v)));
      const auto any = hn::BitCast(du, hn::VecFromMask(d, hn::Ne(v, hn::Zero(d))));
      extent = hn::Or(extent, hn::Or(hn::Add(size, size), hn::ShiftRight<15>(any)));
    }
    all = hn::Or(all, extent);
    const auto low = BitWidths(hn::LowerHalf(half, extent));
    const auto high = BitWidths(hn::UpperHalf(half, extent));
    const hn::Rebind<uint8_t, Four> d4;
    hn::StoreU(hn::DemoteTo(d4, low), d4, needs.data() + 8 * pair);
    hn::StoreU(hn::DemoteTo(d4, high), d4, needs.data() + 8 * pair + 4);
  }
  alignas(16) uint16_t lanes[8];
  hn::Store(all, du, lanes);
  uint16_t any = 0;
  for (const uint16_t lane : lanes) any |= lane;
  return std::bit_width(any);
}

#endif

// The bits of `words` that `kept` has, end to end.
HWY_INLINE uint64_t Extract(uint64_t words, uint64_t kept, const uint8_t* width) {
#if HWY_TARGET <= HWY_AVX2 && HWY_ARCH_X86_64
  (void)width;
  return _pext_u64(words, kept);
#else
  const uint64_t bits = words & kept;
  uint64_t extracted = 0;
  for (int k = 0, at = 0; k < 4; at += width[k++]) {
    extracted |= (bits >> (16 * k) & 0xFFFF) << at;
  }
  return extracted;
#endif
}

HWY_INLINE void WriteQuad(const uint64_t* words, size_t tuple, BitWriter& writer) {
  const uint8_t* const width = kWidths[tuple];
  const uint64_t kept = kKept[tuple];
  const auto bits = static_cast<unsigned>(width[0] + width[1] + width[2] + width[3]);
  uint64_t block[kGroupBlocks];
  for (size_t b = 0; b < kGroupBlocks; ++b) block[b] = Extract(words[2 * b], kept, width);
  if (bits <= 14) {
    return writer.Put(block[0] | block[1] << bits | block[2] << 2 * bits | block[3] << 3 * bits,
                      4 * bits);
  }
  for (const uint64_t one : block) writer.Put(one, bits);
}

// Returns the end; null if a number has too many bits.
HWY_INLINE uint8_t* WriteGroup(const int16_t* group, const uint8_t* tuples, uint8_t* to) {
  GroupWords words;
  Needs needs;
  if (Arrange(group, words, needs) > kMaxWidth) return nullptr;
  uint8_t tuple[kQuads];
  size_t quads = 0;
  for (size_t i = 0; i < kQuads; ++i) {
    const uint8_t* const need = needs.data() + 4 * kQuadOrder[i];
    tuple[i] = tuples[((need[0] * kNeeds + need[1]) * kNeeds + need[2]) * kNeeds + need[3]];
    if (tuple[i] != 0) quads = i + 1;
  }
  *to++ = static_cast<uint8_t>(quads);
  std::memcpy(to, tuple, sizeof(tuple));  // the quads are written over those that do not count
  BitWriter writer(to + quads);
  for (size_t i = 0; i < quads; ++i) WriteQuad(words.Quad(kQuadOrder[i]), tuple[i], writer);
  return writer.next();
}

uint8_t* Pack(const int16_t* groups, int blocks, const uint8_t* tuples, uint8_t* run) {
  std::array<int, kRunBlocks> difference{};
  uint16_t extent = 0;
  int before = groups[0];
  for (int block = 0; block < blocks; ++block) {
    const int dc = groups[block / kGroupBlocks * jpeg::kGroupStride + block % kGroupBlocks * 8];
    const int d = dc - std::exchange(before, dc);
    if (std::abs(d) >= 1 << kMaxWidth) return nullptr;
    difference[static_cast<size_t>(block)] = d;
    extent |= Extent(static_cast<int16_t>(d));
  }
  const int needed = std::bit_width(extent);
  if (needed > kMaxWidth) return nullptr;
  const int code = std::min(needed, 11);
  const auto width = static_cast<unsigned>(DcWidth(code));
  run[0] = static_cast<uint8_t>(code);
  std::memcpy(run + 1, groups, sizeof(int16_t));
  BitWriter writer(run + 3);
  for (const int d : difference) {
    writer.Put(static_cast<uint64_t>(d) & ((uint64_t{1} << width) - 1), width);
  }
  uint8_t* next = writer.next();
  for (int block = 0; block < blocks && next != nullptr; block += kGroupBlocks) {
    next = WriteGroup(groups + block / kGroupBlocks * jpeg::kGroupStride, tuples, next);
  }
  return next;
}

}  // namespace HWY_NAMESPACE
}  // namespace stoker::packed
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker::packed {

HWY_EXPORT(Pack);

uint8_t* PackRun(const int16_t* groups, int blocks, uint8_t* run) {
  static const std::vector<uint8_t> tuples = MakeTuples();
  return HWY_DYNAMIC_DISPATCH(Pack)(groups, blocks, tuples.data(), run);
}

}  // namespace stoker::packed
#endif
