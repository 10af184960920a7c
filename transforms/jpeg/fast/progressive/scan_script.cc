#include "transforms/jpeg/fast/progressive/scan_script.h"

#include <algorithm>

namespace stoker::jpeg {
namespace {

constexpr size_t kEstimated = 10;  // the coefficients that it estimates if bits are missing

size_t U16(const uint8_t* at) { return static_cast<size_t>(at[0] << 8 | at[1]); }

}  // namespace

ScanScript::ScanScript(std::span<const uint8_t> bytes, const FrameHeader& header, int max_scans)
    : bytes_(bytes),
      header_(header),
      scans_left_(max_scans),
      dc_(header.dc),
      ac_(header.ac),
      restart_interval_(header.restart_interval) {
  for (auto& low : low_) low.fill(-1);
}

Fallback ScanScript::Next(size_t offset) {
  while (bytes_.size() - offset >= 2) {
    const uint8_t* const marker = bytes_.data() + offset;
    if (marker[0] != 0xFF) return Fallback::kHeader;
    if (marker[1] == kEoi) return End();
    if (bytes_.size() - offset < 4) break;
    const size_t length = U16(marker + 2);
    if (length < 2 || length + 2 > bytes_.size() - offset) break;
    const Segment segment = bytes_.subspan(offset + 4, length - 2);
    offset += length + 2;
    if (marker[1] == kSos) {
      data_ = offset;
      return ReadScan(segment);
    }
    if (const Fallback why = Read(marker[1], segment); why != Fallback::kNone) return why;
  }
  return Fallback::kBits;
}

Fallback ScanScript::Read(uint8_t marker, Segment segment) {
  if (marker == kDht) {
    return ReadHuffman(segment, dc_, ac_) ? Fallback::kNone : Fallback::kHeader;
  }
  if (marker == kDri && segment.size() == 2) {
    restart_interval_ = static_cast<int>(U16(segment.data()));
    return Fallback::kNone;
  }
  if (marker == kComment || (marker >= kApp0 && marker <= kApp15)) return Fallback::kNone;
  // Quantization tables may change between scans; libjpeg-turbo decodes those files.
  return marker == kDqt ? Fallback::kTables : Fallback::kHeader;
}

Fallback ScanScript::ReadScan(Segment s) {
  if (scans_left_-- <= 0) return Fallback::kScan;
  scan_ = {};
  scan_.restart_interval = restart_interval_;
  if (s.empty() || s.size() != 4 + 2 * size_t{s[0]} || s[0] == 0 || s[0] > header_.components) {
    return Fallback::kHeader;
  }
  scan_.components = s[0];
  const Segment parameters = s.last(3);
  scan_.first = parameters[0];
  scan_.last = parameters[1];
  const int high = parameters[2] >> 4;
  scan_.low = parameters[2] & 15;
  scan_.refines = high != 0;
  const bool dc = scan_.first == 0;
  if (scan_.last > 63 || (dc ? scan_.last != 0 : scan_.last < scan_.first) ||
      (!dc && scan_.components != 1) || scan_.low > kMaxLow ||
      (scan_.refines && high != scan_.low + 1)) {
    return Fallback::kHeader;
  }
  const Fallback why = ReadComponents(s.subspan(1));
  return why == Fallback::kNone ? TakeBits(high) : why;
}

Fallback ScanScript::ReadComponents(Segment s) {
  int index = -1;
  for (size_t i = 0; i < static_cast<size_t>(scan_.components); ++i) {
    const int id = s[2 * i], dc = s[2 * i + 1] >> 4, ac = s[2 * i + 1] & 15;
    do {
      if (++index == header_.components) return Fallback::kHeader;  // unknown, or in another order
    } while (header_.component[static_cast<size_t>(index)].id != id);
    scan_.component[i] = index;
    if (scan_.first == 0) {
      if (scan_.refines) continue;
      scan_.dc[i] = dc > 3 ? nullptr : dc_[static_cast<size_t>(dc)];
      if (scan_.dc[i] == nullptr) return Fallback::kTables;
    } else {
      scan_.ac = ac > 3 ? nullptr : ac_[static_cast<size_t>(ac)];
      if (scan_.ac == nullptr) return Fallback::kTables;
    }
  }
  return Fallback::kNone;
}

// Every coefficient's bits must come once, from the highest to the lowest, and those of AC
// coefficients after the first of DC.
Fallback ScanScript::TakeBits(int high) {
  for (size_t i = 0; i < static_cast<size_t>(scan_.components); ++i) {
    auto& low = low_[static_cast<size_t>(scan_.component[i])];
    if (scan_.first != 0 && low[0] < 0) return Fallback::kScan;
    for (int k = scan_.first; k <= scan_.last; ++k) {
      int8_t& coded = low[static_cast<size_t>(k)];
      if (scan_.refines ? coded != high : coded >= 0) return Fallback::kScan;
      coded = static_cast<int8_t>(scan_.low);
    }
  }
  return Fallback::kNone;
}

Fallback ScanScript::End() {
  ended_ = true;
  for (size_t i = 0; i < static_cast<size_t>(header_.components); ++i) {
    const auto estimated = std::span(low_[i]).first(kEstimated);
    if (std::any_of(estimated.begin(), estimated.end(), [](int8_t low) { return low != 0; })) {
      return Fallback::kScan;
    }
  }
  return Fallback::kNone;
}

}  // namespace stoker::jpeg
