// Compiled once for each instruction set up to AVX2, which includes BMI2's shifts. This file uses
// no vectors, and with AVX-512 g++ 12 keeps numbers in mask registers.
#include "transforms/jpeg/fast/entropy/entropy.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "transforms/jpeg/fast/entropy/entropy.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "transforms/jpeg/fast/entropy/bit_reader-inl.h"

#ifndef STOKER_TRANSFORMS_JPEG_FAST_ENTROPY_CC
#define STOKER_TRANSFORMS_JPEG_FAST_ENTROPY_CC
namespace stoker::jpeg {
namespace {

// The offset of coefficient k from the first one of its block; beyond 63, in the room after the
// group. The largest index belongs to k = 62, a run of 16 and the end of the block.
constexpr size_t kOffsets = 256;
static_assert(62 + 16 + kEndOfBlock < kOffsets);

struct CoefficientOffsets {
  uint16_t at[kOffsets];
};

CoefficientOffsets MakeOffsets() {
  CoefficientOffsets offsets{};
  for (size_t k = 0; k < kOffsets; ++k) {
    const unsigned natural = k < 64 ? kZigZag[k] : 64;
    offsets.at[k] = static_cast<uint16_t>(natural / 8 * kGroupRow + natural % 8);
  }
  return offsets;
}

const CoefficientOffsets kOffsetOf = MakeOffsets();

}  // namespace
}  // namespace stoker::jpeg
#endif

HWY_BEFORE_NAMESPACE();
namespace stoker::jpeg {
namespace HWY_NAMESPACE {

// Decodes one AC symbol after coefficient k. `block` may be null.
HWY_NOINLINE Slow SlowAc(BitReader r, const LongCodes& codes, int k, int16_t* block,
                         bool& damaged) {
  Refill(r);
  const int symbol = TakeSymbol(r, codes);
  if (symbol == 0) return {r, k + kEndOfBlock};
  const int next = k + (symbol >> 4) + 1;
  if (symbol < 0 || next > 63) {
    damaged = true;
    return {r, k + kEndOfBlock};
  }
  const int value = TakeValue(r, symbol & 15);
  if (block != nullptr) block[kOffsetOf.at[next]] = static_cast<int16_t>(value);
  return {r, next};
}

// ---- One lookup

// Takes at most 20 bits: one or two coefficients, which are written to `block`.
struct Decoding {
  static constexpr bool kStore = true;
  using Entry = AcEntry;
  static const Entry* TableOf(const BlockStep& step) { return step.ac->entry.data(); }
  static HWY_INLINE const Entry* Find(const Entry* table, uint64_t window) {
    return table + (window >> (64 - kAcWindow));
  }
  // Returns k of the last coefficient.
  static HWY_INLINE size_t Apply(const Entry& e, uint64_t window, size_t k, int16_t* block) {
    const size_t next = k + e.step;
    const int value = Extend(BitsAt(window, e.place), e.bias);
    block[kOffsetOf.at[k + e.first_step]] = int16_t{e.first_value};
    block[kOffsetOf.at[next]] = static_cast<int16_t>(value);
    return next;
  }
};

// Takes at most 22 bits: as many coefficients as begin in the window.
struct Skipping {
  static constexpr bool kStore = false;
  using Entry = SkipEntry;
  static const Entry* TableOf(const BlockStep& step) { return step.skip->entry.data(); }
  static HWY_INLINE const Entry* Find(const Entry* table, uint64_t window) {
    return table + (window >> (64 - kSkipWindow));
  }
  static HWY_INLINE size_t Apply(const Entry& e, uint64_t, size_t k, int16_t*) {
    return k + e.step;
  }
};

// ---- A stream: parses a run lookup by lookup, so that two streams can be interleaved.

template <class Kind>
class DecodeStream {
 public:
  HWY_INLINE explicit DecodeStream(McuRun& run)
      : run_(run),
        state_(*run.state),
        r_(state_.reader),
        step_(&state_.step[static_cast<size_t>(run.step)]) {
    FindEnd();
    if (run.k < 0) {
      Begin();
    } else {
      k_ = static_cast<size_t>(run.k);
      table_ = Kind::TableOf(*step_);
      block_ = step_->block;
    }
  }

  HWY_INLINE void Refill() { HWY_NAMESPACE::Refill(r_); }

  // One lookup; at most two between refills. Returns false when the run is over, or at a stop.
  HWY_INLINE bool Step() {
    const typename Kind::Entry* const e = Kind::Find(table_, r_.window);
    const unsigned bits = e->bits;
    const size_t next = Kind::Apply(*e, r_.window, k_, block_);
    if (HWY_UNLIKELY(next >= 63)) return TakeUncommon(next, bits);
    k_ = next;
    Drop(r_, bits);
    return true;
  }

  HWY_INLINE void SaveState(bool at_stop) {
    state_.reader = r_;
    run_.step = static_cast<int>(step_ - state_.step.data());
    run_.k = at_stop ? -1 : static_cast<int>(k_);
  }

 private:
  HWY_INLINE void FindEnd() {
    const int first = run_.column % kRoundMcus;
    const int last = std::min(kRoundMcus, first + run_.count);
    end_ = state_.step.data() + last * state_.blocks;
  }

  HWY_INLINE void Begin() {
    int32_t& predictor = state_.dc[static_cast<size_t>(step_->component)];
    predictor += TakeDc(r_, *step_->dc, state_.damaged);
    k_ = 0;
    table_ = Kind::TableOf(*step_);
    if constexpr (Kind::kStore) {
      block_ = step_->block;
      block_[0] = static_cast<int16_t>(predictor);
    }
  }

  // Handles the uncommon cases, usually the end of the block. Returns false at the end of a run.
  HWY_INLINE bool TakeUncommon(size_t next, unsigned bits) {
    if (!Ends(next, bits) && !TakeSlowPath()) return true;
    if constexpr (Kind::kStore) *step_->last = static_cast<uint8_t>(k_);
    if (++step_ == end_ && !NextRound()) return false;
    Begin();
    return true;
  }

  // Returns whether a lookup has ended the block, and takes its bits if so.
  HWY_INLINE bool Ends(size_t next, unsigned bits) {
    const bool by_code = next - kEndOfBlock <= 62;
    if (HWY_UNLIKELY(!by_code && next != 63)) return false;
    Drop(r_, bits);
    k_ = by_code ? next - kEndOfBlock : 63;
    return true;
  }

  // A code longer than the window, or codes that extend into the next block. Returns whether the
  // block has ended.
  HWY_INLINE bool TakeSlowPath() {
    if constexpr (Kind::kStore) return TakeSymbol();
    // Skipping continues with decoding's lookups of at most two symbols.
    for (int i = 0; i < kSkipWindow; ++i) {
      HWY_NAMESPACE::Refill(r_);
      const AcEntry& e = step_->ac->entry[r_.window >> (64 - kAcWindow)];
      const size_t next = k_ + e.step;
      if (next < 63) {
        k_ = next;
        Drop(r_, e.bits);
      } else if (Ends(next, e.bits) || TakeSymbol()) {
        return true;
      }
    }
    return false;
  }

  HWY_INLINE bool TakeSymbol() {
    const Slow slow = SlowAc({r_.window, r_.count, r_.next}, step_->ac->codes, static_cast<int>(k_),
                             Kind::kStore ? block_ : nullptr, state_.damaged);
    r_ = slow.reader;
    if (slow.value > 63) return true;
    k_ = static_cast<size_t>(slow.value);
    return k_ == 63;
  }

  HWY_INLINE bool NextRound() {
    const int done = std::min(kRoundMcus - run_.column % kRoundMcus, run_.count);
    run_.column += done;
    run_.count -= done;
    if (run_.column % kRoundMcus == 0) {
      step_ = state_.step.data();
      if constexpr (Kind::kStore) Advance();
    }
    if (run_.count == 0 || r_.Beyond(state_.stop)) return false;
    FindEnd();
    return true;
  }

  // Advances to the groups of the next round.
  HWY_INLINE void Advance() {
    const int count = kRoundMcus * state_.blocks;
    for (int i = 0; i < count; ++i) {
      BlockStep& step = state_.step[static_cast<size_t>(i)];
      step.block += step.columns * kGroupStride;
      step.last += step.columns * kGroupBlocks;
    }
  }

  McuRun& run_;
  EntropyState& state_;
  BitReader r_;
  const BlockStep* step_;
  const BlockStep* end_ = nullptr;
  size_t k_ = 0;
  const typename Kind::Entry* table_ = nullptr;
  int16_t* block_ = nullptr;
};

template <class Kind>
void ParseAs(McuRun& run) {
  DecodeStream<Kind> stream(run);
  do {
    stream.Refill();
  } while (stream.Step() && stream.Step());
  stream.SaveState(true);
}

template <class A, class B>
void ParseBothAs(McuRun& first, McuRun& second) {
  DecodeStream<A> a(first);
  DecodeStream<B> b(second);
  bool a_on = true, b_on = true;
  do {
    a.Refill();
    b.Refill();
  } while ((a_on = a.Step()) && (b_on = b.Step()) && (a_on = a.Step()) && (b_on = b.Step()));
  a.SaveState(!a_on);
  b.SaveState(!b_on);
}

void ParseOne(McuRun& run) {
  if (run.store) return ParseAs<Decoding>(run);
  ParseAs<Skipping>(run);
}

void ParseTwo(McuRun& a, McuRun& b) {
  if (a.store && b.store) return ParseBothAs<Decoding, Decoding>(a, b);
  if (a.store) return ParseBothAs<Decoding, Skipping>(a, b);
  if (b.store) return ParseBothAs<Decoding, Skipping>(b, a);
  ParseBothAs<Skipping, Skipping>(a, b);
}

}  // namespace HWY_NAMESPACE
}  // namespace stoker::jpeg
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker::jpeg {

HWY_EXPORT(ParseOne);
HWY_EXPORT(ParseTwo);

void ListSteps(EntropyState& state) {
  size_t at = 0;
  for (int mcu = 0; mcu < kRoundMcus; ++mcu) {
    for (int i = 0; i < state.blocks; ++i) {
      const McuBlock& b = state.block[static_cast<size_t>(i)];
      state.step[at++] = {b.dc, b.ac, b.skip, b.component, b.columns, nullptr, nullptr};
    }
  }
}

McuRun StartRun(EntropyState& state, bool store, int column, int count) {
  const int in_round = column % kRoundMcus;
  size_t at = 0;
  for (int mcu = column - in_round; store && mcu < column - in_round + kRoundMcus; ++mcu) {
    for (int i = 0; i < state.blocks; ++i) {
      const McuBlock& b = state.block[static_cast<size_t>(i)];
      const int index = mcu * b.columns + b.column;
      BlockStep& step = state.step[at++];
      step.block =
          b.groups + ptrdiff_t{index / kGroupBlocks} * kGroupStride + index % kGroupBlocks * 8;
      step.last = b.last + index;
    }
  }
  return {&state, store, column, count, in_round * state.blocks, -1};
}

void Parse(McuRun& run) { HWY_DYNAMIC_DISPATCH(ParseOne)(run); }

void ParseBoth(McuRun& a, McuRun& b) { HWY_DYNAMIC_DISPATCH(ParseTwo)(a, b); }

}  // namespace stoker::jpeg
#endif
