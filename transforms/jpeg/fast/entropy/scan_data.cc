// Destuff is compiled once for each instruction set.
#include "transforms/jpeg/fast/entropy/scan_data.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "transforms/jpeg/fast/entropy/scan_data.cc"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace stoker::jpeg {
namespace HWY_NAMESPACE {
#if HWY_TARGET == HWY_SCALAR

Destuffed Copy(const uint8_t* from, const uint8_t* end, uint8_t* to) {
  return DestuffPlain(from, end, to);
}

#else
namespace hn = hwy::HWY_NAMESPACE;

Destuffed Copy(const uint8_t* from, const uint8_t* end, uint8_t* to) {
  const hn::CappedTag<uint8_t, 32> d;
  const auto marker = hn::Set(d, 0xFF);
  const auto lanes = static_cast<ptrdiff_t>(hn::Lanes(d));
  while (from < end) {
    const auto bytes = hn::LoadU(d, from);
    hn::StoreU(bytes, d, to);
    const intptr_t found = hn::FindFirstTrue(d, hn::Eq(bytes, marker));
    // A separate branch, so that the next load does not wait for this result.
    if (HWY_LIKELY(found < 0 && end - from >= lanes)) {
      from += lanes;
      to += lanes;
      continue;
    }
    const ptrdiff_t plain = std::min<ptrdiff_t>(found < 0 ? lanes : found, end - from);
    from += plain;
    to += plain;
    if (found < 0 || from == end) continue;
    if (end - from < 2 || from[1] != 0) break;
    ++to;  // the 0xFF is copied already
    from += 2;
  }
  return {from, to};
}

#endif
}  // namespace HWY_NAMESPACE
}  // namespace stoker::jpeg
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker::jpeg {

HWY_EXPORT(Copy);

Destuffed Destuff(const uint8_t* from, const uint8_t* end, uint8_t* to) {
  return HWY_DYNAMIC_DISPATCH(Copy)(from, end, to);
}

Destuffed DestuffPlain(const uint8_t* from, const uint8_t* end, uint8_t* to) {
  while (from < end) {
    if (*from == 0xFF) {
      if (end - from < 2 || from[1] != 0) break;
      *to++ = 0xFF;
      from += 2;
    } else {
      *to++ = *from++;
    }
  }
  return {from, to};
}

void ScanData::Start(std::span<const uint8_t> bytes) {
  from_ = bytes.data();
  end_ = bytes.data() + bytes.size();
  at_marker_ = false;
  provided_ = 0;
}

void ScanData::Prefetch(std::span<const uint8_t> bytes) {
  const size_t chunk = std::min(bytes.size(), kChunk);
  for (size_t i = 0; i < chunk; i += 64) hwy::Prefetch(bytes.data() + i);
}

// Appends data after `kept` bytes.
void ScanData::Append(EntropyState& state, size_t kept) {
  const auto chunk = static_cast<size_t>(std::min<ptrdiff_t>(end_ - from_, kChunk));
  const uint8_t* const chunk_end = from_ + chunk;
  const Destuffed done = Destuff(from_, chunk_end, clean_.data() + kept);
  from_ = done.from;
  provided_ += done.to - (clean_.data() + kept);
  // The zero after a 0xFF at the end of a chunk may be in the next one.
  at_marker_ =
      from_ == end_ || (from_ != chunk_end && !(chunk_end - from_ == 1 && from_ + 1 < end_));
  state.stop = at_marker_ ? done.to : done.to - kRoundBytes;
  state.reader.next = clean_.data();
  Prefetch(std::span(from_, end_));
}

bool ScanData::Provide(EntropyState& state) {
  if (at_marker_) return false;
  size_t kept = 0;
  if (state.reader.next != nullptr) {
    // `stop` lies kRoundBytes before the end.
    kept = static_cast<size_t>(state.stop + kRoundBytes - state.reader.next);
    std::memmove(clean_.data(), state.reader.next, kept);
  }
  Append(state, kept);
  return true;
}

bool ScanData::Restart(int number, EntropyState& state) {
  while (!at_marker_) {
    state.reader.next = nullptr;
    if (!Provide(state)) return false;
  }
  if (end_ - from_ < 2 || from_[1] != 0xD0 + number) return false;
  from_ += 2;
  at_marker_ = false;
  provided_ = 0;
  state.reader = {};
  return Provide(state);
}

int64_t ScanData::UsedBits(const EntropyState& state) const {
  const uint8_t* const to = state.stop + (at_marker_ ? 0 : kRoundBytes);
  return 8 * (provided_ - (to - state.reader.next)) - state.reader.count;
}

bool ScanData::EndsSegment(const EntropyState& state) const {
  const int64_t unused = UnusedBits(state);
  return at_marker_ && 0 <= unused && unused < 8;
}

std::optional<std::span<const uint8_t>> ScanData::Behind() const {
  if (!at_marker_) return std::nullopt;
  return std::span(from_, end_);
}

}  // namespace stoker::jpeg
#endif
