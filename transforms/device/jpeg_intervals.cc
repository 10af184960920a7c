#include "transforms/device/jpeg_intervals.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <span>

#include "core/result/try.h"
#include "transforms/jpeg/fast/entropy/mcu_parser.h"

namespace stoker {

using decode::CropCodes;
using decode::CropInterval;
using jpeg::CropIndex;
using jpeg::EntryPoint;
using jpeg::IndexShape;

namespace {

Error Changed() { return {Code::kDataLoss, "the JPEG is not what its crop index was made of"}; }

// Goes through the rows of MCUs of a crop.
class Intervals {
 public:
  Intervals(const IndexedJpeg& file, const jpeg::CropGeometry& geometry, CropInterval* intervals,
            CropBits& bits)
      : file_(file),
        shape_(file.index.shape()),
        scan_(file.bytes.subspan(file.frame.scan_offset)),
        geometry_(geometry),
        next_(intervals),
        bits_(bits) {}

  Status Plan() {
    if (!file_.index.HeaderIntact(file_.bytes)) return Changed();
    for (int row = geometry_.top; row < geometry_.bottom; ++row) TRY(PlanRow(row));
    return Check();
  }

 private:
  Status PlanRow(int row);
  bool PassMarker(int64_t number, EntryPoint& entry_point) const;
  Status Take(const EntryPoint& from, const EntryPoint& until);
  Status Check() const;

  const IndexedJpeg& file_;
  const IndexShape& shape_;
  const std::span<const uint8_t> scan_;
  const jpeg::CropGeometry& geometry_;
  CropInterval* next_;
  CropBits& bits_;
  // The bytes that were taken, and are still to be checked, lie between these. The rows of a crop
  // often share pieces that have a checksum.
  EntryPoint from_, until_;
  bool taken_ = false;
};

// From the last entry point at or before the left edge to the first one at or after the right one.
Status Intervals::PlanRow(int row) {
  const int64_t across = geometry_.mcus_across;
  const int64_t left = row * across + geometry_.left, right = row * across + geometry_.right;
  int64_t number = shape_.EntryPointBefore(left);
  CropIndex::Reader reader = file_.index.From(number);
  EntryPoint entry_point;
  reader.Next(entry_point);
  const EntryPoint beginning = entry_point;
  const int64_t begin = beginning.byte();
  const auto taken = static_cast<int64_t>(bits_.end());
  int64_t segment_end = number;
  int64_t end = shape_.McuAt(number);
  while (end < right) {
    if (shape_.MarkerFollows(number) && !PassMarker(number, entry_point)) return Changed();
    const int64_t first = end, bit = entry_point.bit;
    if (number == segment_end) segment_end = shape_.SegmentEnd(number);
    end = ++number == segment_end ? shape_.McuAt(number) : first + shape_.interval;
    const int64_t wanted = std::max(first, left);
    CropInterval interval{.bit = static_cast<uint32_t>(bit + 8 * (taken - begin)),
                          .skipped = static_cast<uint8_t>(wanted - first),
                          .wanted = static_cast<uint8_t>(std::min(end, right) - wanted),
                          .column = static_cast<uint16_t>(wanted - left),
                          .row = static_cast<uint16_t>(row - geometry_.top)};
    for (size_t c = 0; c < 3; ++c) interval.dc[c] = static_cast<int16_t>(entry_point.dc[c]);
    *next_++ = interval;
    reader.Next(entry_point);
    if (bit > entry_point.bit) return Changed();
  }
  return Take(beginning, entry_point);
}

// Goes from an entry point to the MCU after its restart marker. False if the marker is not there.
bool Intervals::PassMarker(int64_t number, EntryPoint& entry_point) const {
  const size_t at = jpeg::EndOf(entry_point, scan_);
  const int64_t passed = number / shape_.per_stride - 1;  // markers
  if (at + 2 > scan_.size() || scan_[at] != 0xFF || scan_[at + 1] != 0xD0 + passed % 8) {
    return false;
  }
  entry_point = {8 * static_cast<int64_t>(at + 2), {}};
  return true;
}

// Takes the bytes of a row, with all that may have bits of it: to look whether the last byte and
// the zero stuffed after it are there would be to wait for memory.
Status Intervals::Take(const EntryPoint& from, const EntryPoint& until) {
  const auto scan_bytes = static_cast<int64_t>(scan_.size());
  if (from.bit < from_.bit || from.bit > until.bit || until.byte() > scan_bytes) return Changed();
  const int64_t begin = from.byte(), end = std::min(until.end_byte(), scan_bytes);
  bits_.Add(scan_.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)));
  const bool apart = begin > until_.end_byte() + int64_t{CropIndex::kPieceBytes};
  if (taken_ && apart) TRY(Check());
  if (!taken_ || apart) from_ = from;
  if (until.bit > until_.bit) until_ = until;  // with restart markers, rows may overlap
  taken_ = true;
  return {};
}

Status Intervals::Check() const {
  return file_.index.Intact(file_.bytes, from_, until_) ? Status() : Changed();
}

CropCodes CodesOf(jpeg::HuffmanSpec spec) {
  CropCodes codes;
  std::memcpy(codes.count.data(), spec, codes.count.size());
  const size_t symbols = std::accumulate(codes.count.begin(), codes.count.end(), size_t{0});
  std::memcpy(codes.symbol.data(), spec + codes.count.size(),
              std::min(symbols, codes.symbol.size()));
  return codes;
}

}  // namespace

// From the last entry point at or before the left edge to the last one before the right one. Only
// restart markers make rows differ.
uint32_t CountIntervals(const IndexedJpeg& file, const jpeg::CropGeometry& geometry) {
  const IndexShape& shape = file.index.shape();
  const auto of_row = [&](int64_t row) {
    const int64_t first = row * geometry.mcus_across;
    return shape.EntryPointBefore(first + geometry.right - 1) -
           shape.EntryPointBefore(first + geometry.left) + 1;
  };
  int64_t count = 0;
  if (shape.restarts) {
    for (int row = geometry.top; row < geometry.bottom; ++row) count += of_row(row);
  } else {
    count = (geometry.bottom - geometry.top) * of_row(geometry.top);
  }
  return static_cast<uint32_t>(count);
}

Status PlanIntervals(const IndexedJpeg& file, const jpeg::CropGeometry& geometry,
                     CropInterval* intervals, CropBits& bits) {
  return Intervals(file, geometry, intervals, bits).Plan();
}

Status PlanCodes(const jpeg::FrameHeader& frame, decode::DeviceCrop& crop,
                 std::array<CropCodes, decode::kMostCodes>& codes) {
  std::array<jpeg::HuffmanSpec, decode::kMostCodes> listed{};
  size_t count = 0;
  const auto number_of = [&](jpeg::HuffmanSpec spec) {
    const auto end = listed.begin() + static_cast<ptrdiff_t>(count);
    const auto found = std::find(listed.begin(), end, spec);
    if (found == end && end != listed.end()) {
      *found = spec;
      codes[count++] = CodesOf(spec);
    }
    return static_cast<uint8_t>(found - listed.begin());
  };
  for (size_t c = 0; c < static_cast<size_t>(frame.components); ++c) {
    crop.dc_codes[c] = number_of(frame.dc[static_cast<size_t>(frame.component[c].dc)]);
    crop.ac_codes[c] = number_of(frame.ac[static_cast<size_t>(frame.component[c].ac)]);
    if (std::max(crop.dc_codes[c], crop.ac_codes[c]) == decode::kMostCodes) {
      return Error{Code::kUnimplemented,
                   "devices do not decode JPEGs with more than four Huffman tables"};
    }
  }
  crop.codes = static_cast<uint8_t>(count);
  return {};
}

}  // namespace stoker
