#include "transforms/jpeg/fast/progressive/scan_decoder.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "core/numbers/divide_up.h"
#include "transforms/jpeg/fast/entropy/huffman.h"

namespace stoker::jpeg {
namespace {

// The bytes that are kept from image to image: enough for a region of 250,000 pixels in 4:2:0. New
// memory for larger ones costs little in comparison.
constexpr size_t kKeptBytes = size_t{1} << 20;

constexpr size_t kGroupBytes = kGroupStride * sizeof(int16_t);

}  // namespace

// ---- The blocks

void ScanDecoder::Begin(const FrameHeader& header, const CropGeometry& geometry) {
  header_ = &header;
  geometry_ = &geometry;
  groups_ = 0;
  const bool gray = header.components == 1;
  for (size_t i = 0; i < static_cast<size_t>(header.components); ++i) {
    const Component& c = header.component[i];
    Plane& p = plane_[i];
    p.columns = gray ? 1 : c.columns;
    p.rows = gray ? 1 : c.rows;
    // The first component has the most samples.
    p.across = DivideUp(DivideUp(header.size.width * p.columns, header.mcu_columns()), 8);
    p.down = DivideUp(DivideUp(header.size.height * p.rows, header.mcu_rows()), 8);
    p.first_group = groups_;
    p.row_groups = DivideUp(geometry.mcus() * p.columns, kGroupBlocks);
    groups_ += static_cast<size_t>(p.rows) * static_cast<size_t>(p.row_groups);
  }
}

std::array<Growth, 2> ScanDecoder::Growths() {
  size_t masks = 0;
  for (const Plane& p : std::span(plane_).first(static_cast<size_t>(header_->components))) {
    masks += static_cast<size_t>(p.across) * static_cast<size_t>(p.down);
  }
  const auto rows = static_cast<size_t>(geometry_->bottom - geometry_->top);
  return {Growth{coefficients_, rows * groups_ * kGroupBytes},
          Growth{masks_, masks * sizeof(uint64_t)}};
}

int16_t* ScanDecoder::Groups(int mcu_row) const {
  const auto row = static_cast<size_t>(mcu_row - geometry_->top);
  return reinterpret_cast<int16_t*>(coefficients_.data() + row * groups_ * kGroupBytes);
}

BlockSpan ScanDecoder::SpanOf(const Plane& p, int block_row) const {
  BlockSpan span;
  // (The last MCUs of a scan may have rows of blocks below the image.)
  if (block_row < p.down) span.mask = p.masks + ptrdiff_t{block_row} * p.across;
  const int mcu_row = block_row / p.rows;
  if (mcu_row < geometry_->top || mcu_row >= geometry_->bottom) return span;
  const size_t group = p.first_group + static_cast<size_t>(block_row % p.rows * p.row_groups);
  span.groups = Groups(mcu_row) + group * kGroupStride;
  span.first = -geometry_->left * p.columns;
  span.kept = geometry_->mcus() * p.columns;
  return span;
}

void ScanDecoder::StoreLast(int mcu_row, uint8_t* last) const {
  for (const Plane& p : std::span(plane_).first(static_cast<size_t>(header_->components))) {
    for (int row = 0; row < p.rows; ++row, last += p.row_groups * kGroupBlocks) {
      const int block_row = mcu_row * p.rows + row, left = geometry_->left * p.columns;
      const int kept = std::min(geometry_->mcus() * p.columns, p.across - left);
      std::memset(last, 0, static_cast<size_t>(p.row_groups * kGroupBlocks));
      if (block_row >= p.down) continue;
      const uint64_t* const mask = p.masks + ptrdiff_t{block_row} * p.across + left;
      for (int i = 0; i < kept; ++i) {
        last[i] = static_cast<uint8_t>(63 - std::countr_zero(mask[i] | uint64_t{1} << 63));
      }
    }
  }
}

void ScanDecoder::Clear() {
  if (coefficients_.capacity() == 0) return;
  std::memset(coefficients_.data(), 0, coefficients_.capacity());
}

void ScanDecoder::FreeExcess() {
  if (memory_bytes() > kKeptBytes) FreeMemory();
}

void ScanDecoder::FreeMemory() {
  coefficients_.Free();
  masks_.Free();
}

// ---- The scans

Fallback ScanDecoder::Decode(std::span<const uint8_t> bytes, int max_scans) {
  bytes_ = bytes;
  auto* next = reinterpret_cast<uint64_t*>(masks_.data());
  for (Plane& p : std::span(plane_).first(static_cast<size_t>(header_->components))) {
    p.masks = next;
    next += ptrdiff_t{p.across} * p.down;
  }
  std::memset(masks_.data(), 0,
              static_cast<size_t>(reinterpret_cast<uint8_t*>(next) - masks_.data()));
  ScanScript script(bytes, *header_, max_scans);
  for (end_ = header_->scan_marker;;) {
    if (const Fallback why = script.Next(end_); why != Fallback::kNone) return why;
    if (script.scan() == nullptr) return Fallback::kNone;
    data_.Start(bytes.subspan(script.data()));
    if (const Fallback why = DecodeScan(*script.scan()); why != Fallback::kNone) return why;
  }
}

bool ScanDecoder::BuildTables(const Scan& scan) {
  if (scan.ac != nullptr) return BuildScanTable(scan.ac, ac_);
  for (size_t i = 0; i < static_cast<size_t>(scan.components); ++i) {
    if (scan.dc[i] != nullptr && !BuildDcTable(scan.dc[i], dc_[i])) return false;
  }
  return true;
}

// A scan of one component has its blocks, row by row; other scans have MCUs.
Fallback ScanDecoder::DecodeScan(const Scan& scan) {
  if (!BuildTables(scan)) return Fallback::kTables;
  ac_scan_ = {&ac_, scan.first, scan.last, scan.low, 0};
  state_.reader = {};
  state_.dc = {};
  state_.damaged = false;
  restarts_ = 0;
  if (!data_.Provide(state_)) return Fallback::kBits;
  const Plane& p = plane_[static_cast<size_t>(scan.component[0])];
  const bool alone = scan.components == 1;
  const int across = alone ? p.across : geometry_->mcus_across;
  const int down = alone ? p.down : geometry_->mcu_rows;
  int64_t segment_left =
      scan.restart_interval != 0 ? scan.restart_interval : std::numeric_limits<int64_t>::max();
  for (int row = 0; row < down; ++row) {
    ListSpans(scan, row);
    if (const Fallback why = DecodeRow(scan, across, segment_left); why != Fallback::kNone) {
      return why;
    }
  }
  if (!data_.EndsSegment(state_)) return Fallback::kBits;
  end_ = static_cast<size_t>(data_.Behind()->data() - bytes_.data());
  return Fallback::kNone;
}

void ScanDecoder::ListSpans(const Scan& scan, int row) {
  dc_scan_.low = scan.low;
  dc_scan_.spans = 0;
  for (size_t i = 0; i < static_cast<size_t>(scan.components); ++i) {
    const Plane& p = plane_[static_cast<size_t>(scan.component[i])];
    const bool alone = scan.components == 1;
    const int rows = alone ? 1 : p.rows, columns = alone ? 1 : p.columns;
    for (int r = 0; r < rows; ++r) {
      dc_scan_.span[static_cast<size_t>(dc_scan_.spans++)] = {SpanOf(p, row * rows + r), &dc_[i],
                                                              static_cast<int>(i), columns};
    }
  }
}

int ScanDecoder::DecodeSome(const Scan& scan, int from, int to) {
  if (scan.first == 0) {
    return scan.refines ? RefineDc(state_, dc_scan_, from, to)
                        : jpeg::DecodeDc(state_, dc_scan_, from, to);
  }
  const BlockSpan& blocks = dc_scan_.span[0].blocks;
  return scan.refines ? RefineAc(state_, ac_scan_, blocks, from, to)
                      : jpeg::DecodeAc(state_, ac_scan_, blocks, from, to);
}

Fallback ScanDecoder::DecodeRow(const Scan& scan, int across, int64_t& segment_left) {
  for (int at = 0; at < across;) {
    if (segment_left == 0) {
      if (const Fallback why = Restart(); why != Fallback::kNone) return why;
      segment_left = scan.restart_interval;
    }
    const auto to = static_cast<int>(std::min<int64_t>(across, at + segment_left));
    const int done = DecodeSome(scan, at, to);
    segment_left -= done - at;
    at = done;
    if (state_.damaged) return Fallback::kBits;
    if (ScanData::Passed(state_) && !data_.Provide(state_)) return Fallback::kBits;
  }
  for (const int32_t predictor : state_.dc) {
    if (std::abs(predictor) >= kMaxPredictor) return Fallback::kBits;
  }
  return Fallback::kNone;
}

Fallback ScanDecoder::Restart() {
  if (!data_.EndsSegment(state_) || !data_.Restart(restarts_++ % 8, state_))
    return Fallback::kRestart;
  state_.dc = {};
  ac_scan_.end_run = 0;
  return Fallback::kNone;
}

}  // namespace stoker::jpeg
