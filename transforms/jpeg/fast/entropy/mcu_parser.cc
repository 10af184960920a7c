#include "transforms/jpeg/fast/entropy/mcu_parser.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace stoker::jpeg {

namespace {

// The maximum number of MCUs parsed at a time, so that no predictor can overflow.
constexpr int kMaxMcus = 1 << 16;
static_assert(int64_t{kMaxMcus} * 4 * ((1 << kMaxDcSize) - 1) < kMaxPredictor);

}  // namespace

// Builds only the tables that the scan uses, each once.
Fallback McuParser::Open(std::span<const uint8_t> bytes, const FrameHeader& header) {
  unsigned have_dc = 0, have_ac = 0;
  Want(0, false, 0);  // drops requests of the previous image
  entropy_.blocks = 0;
  for (int i = 0; i < header.components; ++i) {
    const Component& c = header.component[static_cast<size_t>(i)];
    const auto d = static_cast<size_t>(c.dc), a = static_cast<size_t>(c.ac);
    if ((have_dc >> d & 1) == 0 && !BuildDcTable(header.dc[d], dc_[d])) return Fallback::kTables;
    if ((have_ac >> a & 1) == 0) {
      if (!BuildAcTable(header.ac[a], ac_[a])) return Fallback::kTables;
      BuildSkipTable(header.ac[a], skip_[a]);
    }
    have_dc |= 1u << d;
    have_ac |= 1u << a;
    const int columns = header.components == 1 ? 1 : c.columns;
    const int rows = header.components == 1 ? 1 : c.rows;
    for (int block = 0; block < columns * rows; ++block) {
      entropy_.block[static_cast<size_t>(entropy_.blocks++)] = {
          &dc_[d], &ac_[a], &skip_[a], i, columns, block % columns, nullptr, nullptr};
    }
  }
  ListSteps(entropy_);
  scan_ = bytes.subspan(header.scan_offset);
  restart_interval_ = header.restart_interval;
  mcus_ = IndexShape(header, 1).mcus;
  return Fallback::kNone;
}

Fallback McuParser::Start() {
  data_.Start(scan_);
  entropy_.reader = {};
  entropy_.dc = {};
  entropy_.damaged = false;
  next_ = segment_ = 0;
  Want(0, false, 0);
  located_ = 0;
  located_segment_ = located_clean_ = 0;
  return data_.Provide(entropy_) ? Fallback::kNone : Fallback::kBits;
}

// ---- With a crop index

size_t EndOf(const EntryPoint& entry_point, std::span<const uint8_t> scan) {
  const auto byte = static_cast<size_t>(entry_point.byte());
  if (entry_point.bit % 8 == 0 || byte >= scan.size()) return byte;
  return byte + (scan[byte] == 0xFF ? 2 : 1);
}

void McuParser::Prefetch(const EntryPoint& from, const EntryPoint& until) const {
  const auto begin = static_cast<size_t>(from.byte()), end = static_cast<size_t>(until.byte());
  if (begin < end && end <= scan_.size()) ScanData::Prefetch(scan_.subspan(begin, end - begin));
}

Fallback McuParser::Seek(int64_t number, const EntryPoint& from, const EntryPoint& until) {
  const auto begin = static_cast<size_t>(from.byte());
  const size_t end = EndOf(until, scan_);
  if (from.bit > until.bit || end > scan_.size()) return Fallback::kBits;
  data_.Start(scan_.subspan(begin, end - begin));
  entropy_.reader = {};
  entropy_.dc = from.dc;
  entropy_.damaged = false;
  next_ = number;
  Want(0, false, 0);
  segment_ = restart_interval_ == 0 || number == 0 ? 0 : (number - 1) / restart_interval_;
  if (!data_.Provide(entropy_)) return Fallback::kBits;
  if (const auto bit = static_cast<int>(from.bit % 8); bit != 0) {
    // Skips the bits of this byte before the entry point.
    BitReader& r = entropy_.reader;
    if (data_.UnusedBits(entropy_) < 8) return Fallback::kBits;
    r.window = uint64_t{*r.next} << (56 + bit);
    r.count = 8 - bit;
    ++r.next;
  }
  // If a marker comes next, it must come right here.
  return segment_ == SegmentOf(number) || EndsSegment() ? PassMarker() : Fallback::kRestart;
}

Fallback McuParser::CheckArrival(const EntryPoint& until) {
  const auto behind = data_.Behind();
  const bool there = behind && behind->empty() &&
                     data_.UnusedBits(entropy_) == (8 - until.bit % 8) % 8 &&
                     entropy_.dc == until.dc;
  return there ? Fallback::kNone : Fallback::kBits;
}

// ---- Parsing

void McuParser::Want(int64_t count, bool store, int column) {
  wanted_ = count;
  store_ = store;
  column_ = column;
  in_run_ = 0;
  why_ = Fallback::kNone;
}

McuRun* McuParser::Next() {
  if (why_ != Fallback::kNone) return nullptr;
  if (in_run_ != 0) {
    if (why_ = EndStop(); why_ != Fallback::kNone) return nullptr;
    if (run_.count != 0) return &run_;
    next_ += std::exchange(in_run_, 0);
  }
  if (wanted_ == 0) return nullptr;
  if (why_ = PassMarker(); why_ != Fallback::kNone) return nullptr;
  int64_t count = std::min<int64_t>(wanted_, kMaxMcus);
  if (restart_interval_ != 0) {
    count = std::min(count, restart_interval_ - next_ % restart_interval_);
  }
  run_ = StartRun(entropy_, store_, column_, static_cast<int>(count));
  in_run_ = count;
  wanted_ -= count;
  column_ += static_cast<int>(count);
  return &run_;
}

// Handles a run at a stop.
Fallback McuParser::EndStop() {
  if (entropy_.damaged) return Fallback::kBits;
  if (ScanData::Passed(entropy_) && !data_.Provide(entropy_)) return Fallback::kBits;
  for (const int32_t predictor : entropy_.dc) {
    if (std::abs(predictor) >= kMaxPredictor) return Fallback::kBits;
  }
  return Fallback::kNone;
}

// Called if the next MCU is the first after a restart marker.
Fallback McuParser::PassMarker() {
  const int64_t segment = SegmentOf(next_);
  if (segment == segment_) return Fallback::kNone;
  if (!data_.Restart(static_cast<int>(segment_ % 8), entropy_)) return Fallback::kRestart;
  entropy_.dc = {};
  segment_ = segment;
  return Fallback::kNone;
}

// ---- For making an index

EntryPoint McuParser::Locate() {
  for (; located_segment_ < segment_; ++located_segment_) {  // the parser has passed these markers
    while (scan_[located_] != 0xFF || scan_[located_ + 1] == 0) ++located_;
    located_ += 2;
    located_clean_ = 0;
  }
  const int64_t used = data_.UsedBits(entropy_);
  for (auto left = static_cast<size_t>(used / 8 - located_clean_); left > 0;) {
    const uint8_t* const from = scan_.data() + located_;
    const auto* const stuffed = static_cast<const uint8_t*>(std::memchr(from, 0xFF, left));
    const size_t clean = stuffed == nullptr ? left : static_cast<size_t>(stuffed - from) + 1;
    located_ += clean + (stuffed == nullptr ? 0 : 1);
    left -= clean;
  }
  located_clean_ = used / 8;
  return {8 * static_cast<int64_t>(located_) + used % 8, entropy_.dc};
}

bool McuParser::EndsInPadding() {
  const size_t used = EndOf(Locate(), scan_);
  size_t zeros = scan_.size();  // where the zeros at the end begin
  while (zeros > 0 && scan_[zeros - 1] == 0) --zeros;
  // The zero stuffed after 0xFF has no bits. Data whose last byte is zero cannot be told from data
  // that were cut off, and are refused: this is rare in photographs, but one in eight if the corner
  // is colorless and the Huffman tables are the standard's.
  const bool stuffed = zeros > 0 && scan_[zeros - 1] == 0xFF;
  return used == zeros + (stuffed ? 1 : 0) && scan_.size() >= used + 2;
}

bool McuParser::AtEndOfImage() {
  if (!EndsSegment()) return false;
  const std::span<const uint8_t> behind = *data_.Behind();
  return behind.size() >= 2 && behind[1] == 0xD9;
}

}  // namespace stoker::jpeg
