#include "transforms/device/packed_runs.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/numbers/divide_up.h"
#include "core/result/try.h"
#include "transforms/packed/format.h"

namespace stoker {

using decode::CropPlane;
using decode::CropRun;
using decode::kGroupSamples;
using packed::BlockRow;
using packed::kGroupBlocks;
using packed::kRunGroups;

int FirstMcuOfRuns(const jpeg::CropGeometry& geometry) {
  return geometry.left - geometry.left % kGroupBlocks;
}

namespace {

// The groups of a row of blocks that the crop needs.
struct Groups {
  Groups(const BlockRow& blocks, const jpeg::CropGeometry& geometry)
      : first(geometry.left * blocks.columns / kGroupBlocks),
        end(DivideUp(geometry.right * blocks.columns, kGroupBlocks)) {}
  int runs() const { return DivideUp(end, kRunGroups) - first / kRunGroups; }

  int first, end;
};

// Goes through the sizes of a row's runs, and takes those that the crop needs. Returns the end of
// the list written.
Result<CropRun*> PlanRow(std::span<const uint8_t> row, const packed::BlockRows& block_rows,
                         const jpeg::CropGeometry& geometry, int mcu_row,
                         const std::array<CropPlane, 3>& planes, CropRun* runs, CropBits& bits) {
  const uint8_t* size = row.data();
  size_t at = static_cast<size_t>(block_rows.runs) * sizeof(uint16_t);
  if (at > row.size()) return packed::Damaged("the sizes of runs", 0);
  for (const BlockRow& blocks : block_rows.all()) {
    const auto [first, end] = Groups(blocks, geometry);
    const int origin = FirstMcuOfRuns(geometry) * blocks.columns / kGroupBlocks;
    const auto component = static_cast<size_t>(blocks.component);
    const CropPlane& plane = planes[component];
    const int side = geometry.side(blocks.component);
    const int unit = blocks.component == 0 ? geometry.mcu_height : side;
    const int y = (mcu_row - geometry.top) * unit + blocks.row * side;
    const uint32_t samples =
        plane.first + static_cast<uint32_t>(y) * (plane.stride / kGroupSamples);
    size_t piece = 0;  // where the needed runs begin
    for (int run = 0; run < blocks.runs(); ++run, size += sizeof(uint16_t)) {
      const int group = run * kRunGroups;
      if (group <= first) piece = at;
      if (group < end && group + kRunGroups > first) {
        const int from = std::max(first - group, 0), to = std::min(end - group, kRunGroups);
        *runs++ = {.at = static_cast<uint32_t>(bits.end() + (at - piece)),
                   .samples = samples + static_cast<uint32_t>(group + from - origin),
                   .component = static_cast<uint8_t>(component),
                   .from = static_cast<uint8_t>(from),
                   .to = static_cast<uint8_t>(to)};
      }
      at += packed::LoadU16(size);
      if (at > row.size()) return packed::Damaged("the sizes of runs", 0);
      if (group < end && group + kRunGroups >= end) bits.Add(row.subspan(piece, at - piece));
    }
  }
  return runs;
}

}  // namespace

// Each row of MCUs has as many.
RunCounts CountRuns(const packed::PackedFile& file, const jpeg::CropGeometry& geometry) {
  const packed::BlockRows block_rows(file.frame());
  int runs = 0, pieces = 0;
  for (const BlockRow& blocks : block_rows.all()) {
    runs += Groups(blocks, geometry).runs();
    ++pieces;
  }
  const int rows = geometry.bottom - geometry.top;
  return {static_cast<uint32_t>(rows * runs), static_cast<uint32_t>(rows * pieces)};
}

Status PlanRuns(const packed::PackedFile& file, const jpeg::CropGeometry& geometry,
                const std::array<CropPlane, 3>& planes, CropRun* runs, CropBits& bits) {
  const packed::BlockRows block_rows(file.frame());
  for (int mcu_row = geometry.top; mcu_row < geometry.bottom; ++mcu_row) {
    ASSIGN_OR_RETURN(const std::span<const uint8_t> row, file.Row(mcu_row));
    ASSIGN_OR_RETURN(runs, PlanRow(row, block_rows, geometry, mcu_row, planes, runs, bits));
  }
  return {};
}

}  // namespace stoker
