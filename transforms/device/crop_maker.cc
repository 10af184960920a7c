#include "transforms/device/crop_maker.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>

#include "core/try.h"
#include "transforms/packed/format.h"

namespace stoker {

using decode::CropAxis;
using decode::CropPlane;
using decode::CropRun;
using decode::CropTile;
using decode::DeviceCrop;
using decode::kCropAlignment;
using decode::kGroupSamples;
using decode::WeightPair;
using packed::BlockRow;
using packed::kGroupBlocks;
using packed::kRunGroups;

namespace {

constexpr char kTooLarge[] = "boxes that are so large";

Error NotOnDevices(const std::string& what) {
  return {Code::kUnimplemented, "devices do not resample " + what};
}

size_t Aligned(size_t bytes) {
  return (bytes + kCropAlignment - 1) / kCropAlignment * kCropAlignment;
}

// The first MCU of the planes, at which a group begins in all components.
int FirstMcu(const jpeg::CropGeometry& geometry) {
  return geometry.left - geometry.left % kGroupBlocks;
}

// The size of the largest part of the source that `outputs` neighbours are computed from.
int LargestSource(const AxisTaps& taps, int outputs) {
  int largest = 0;
  for (int first = 0; first < taps.count; first += outputs) {
    const int last = std::min(first + outputs, taps.count) - 1;
    largest = std::max(largest, taps.starts[last] - taps.starts[first]);
  }
  return largest + 2 * taps.pairs;
}

}  // namespace

Status CropMaker::Plan(const packed::PackedFile& file, const Resampling& task) {
  crop_ = {};
  if (task.image != file.frame().size) return packed::Damaged("its size", 0);
  TRY(PlanAxes(task));
  PlanOutput(task);
  const Rect region{crop_.x, crop_.y, crop_.width, crop_.height};
  const jpeg::CropGeometry geometry(file.frame(), region);
  PlanFactors(file.frame());
  PlanPlanes(geometry);
  TRY(PlanTiles());
  TRY(PlanRuns(file, geometry));
  return PlanMemory();
}

Status CropMaker::PlanAxes(const Resampling& task) {
  if (InSteps(task.interpolation)) {
    return NotOnDevices(std::string("by ") + NameOf(task.interpolation));
  }
  const ResamplingAxes axes(task);
  if (axes.visible != task.window) return NotOnDevices("images with padding");
  if (3 * int64_t{task.window.width} * task.window.height > std::numeric_limits<int32_t>::max()) {
    return NotOnDevices("to so large a size");
  }
  TRY(rows_.Compute(axes.rows));
  TRY(columns_.Compute(axes.columns));
  crop_.x = task.box.x + columns_.begin();
  crop_.y = task.box.y + rows_.begin();
  crop_.width = columns_.end() - columns_.begin();
  crop_.height = rows_.end() - rows_.begin();
  if (crop_.width == 0 || crop_.height == 0) return NotOnDevices("boxes outside their image");
  crop_.rows.pairs = static_cast<uint32_t>(rows_.taps().pairs);
  crop_.columns.pairs = static_cast<uint32_t>(columns_.taps().pairs);
  const int middle_bits = MiddleBits(columns_.taps().shift);
  crop_.middle_shift = rows_.taps().shift - middle_bits;
  crop_.last_shift = columns_.taps().shift + middle_bits;
  return {};
}

void CropMaker::PlanOutput(const Resampling& task) {
  const Turn& turn = task.turn;
  ImageSize size = task.window.size();
  if (turn.transpose) std::swap(size.width, size.height);
  int across = 3, down = 3 * size.width;
  if (turn.mirror_columns) {
    crop_.out += across * (size.width - 1);
    across = -across;
  }
  if (turn.mirror_rows) {
    crop_.out += down * (size.height - 1);
    down = -down;
  }
  crop_.along = turn.transpose ? down : across;
  crop_.down = turn.transpose ? across : down;
}

void CropMaker::PlanFactors(const jpeg::FrameHeader& frame) {
  for (size_t c = 0; c < static_cast<size_t>(frame.components); ++c) {
    const auto table = static_cast<size_t>(frame.component[c].quantisation);
    for (size_t i = 0; i < 64; ++i) {
      crop_.factor[c][i % 8][i / 8] = frame.quantisation[table][i];
    }
  }
}

void CropMaker::PlanPlanes(const jpeg::CropGeometry& geometry) {
  crop_.gray = geometry.gray;
  crop_.wide = geometry.wide;
  crop_.tall = geometry.tall;
  const int left = FirstMcu(geometry), mcus = geometry.right - left;
  const ImageSize chroma{geometry.chroma_columns, geometry.chroma_height};
  groups_ = 0;
  for (size_t c = 0; c < (geometry.gray ? 1 : 3); ++c) {
    const int width = c == 0 ? geometry.mcu_width : geometry.chroma_side;
    const int height = c == 0 ? geometry.mcu_height : geometry.chroma_side;
    const auto groups = (static_cast<uint32_t>(mcus * width) + kGroupSamples - 1) / kGroupSamples;
    CropPlane& plane = crop_.plane[c];
    plane.first = static_cast<uint32_t>(groups_);
    plane.stride = groups * kGroupSamples;
    plane.x = left * width;
    plane.y = geometry.top * height;
    plane.last_x = (c == 0 ? crop_.x + crop_.width : chroma.width) - 1;
    plane.last_y = (c == 0 ? crop_.y + crop_.height : chroma.height) - 1;
    groups_ += uint64_t{groups} * static_cast<uint64_t>((geometry.bottom - geometry.top) * height);
  }
}

// ---- Tiles

// Halves tiles until the threads' memory has room for what each is computed from.
Status CropMaker::PlanTiles() {
  int width = decode::kTileColumns, height = decode::kTileRows;
  while (true) {
    const int columns = LargestSource(columns_.taps(), width);
    const int rows = LargestSource(rows_.taps(), height);
    if (int64_t{columns} * rows <= decode::kTilePixels &&
        int64_t{columns} * height <= decode::kTileMiddle) {
      break;
    }
    if (width == 1 && height == 1) return NotOnDevices("so large a box to so small a size");
    (height == 1 || (width > 1 && columns > rows) ? width : height) /= 2;
  }
  tiles_.clear();
  const int right = columns_.taps().count, bottom = rows_.taps().count;
  for (int y = 0; y < bottom; y += height) {
    for (int x = 0; x < right; x += width) {
      CropTile tile;
      tile.x = static_cast<uint16_t>(x);
      tile.y = static_cast<uint16_t>(y);
      tile.columns = static_cast<uint8_t>(std::min(width, right - x));
      tile.rows = static_cast<uint8_t>(std::min(height, bottom - y));
      tiles_.push_back(tile);
    }
  }
  return {};
}

// ---- Runs

Status CropMaker::PlanRuns(const packed::PackedFile& file, const jpeg::CropGeometry& geometry) {
  runs_.clear();
  pieces_.clear();
  packed_bytes_ = 0;
  const packed::BlockRows block_rows(file.frame());
  for (int mcu_row = geometry.top; mcu_row < geometry.bottom; ++mcu_row) {
    ASSIGN_OR_RETURN(const std::span<const uint8_t> row, file.Row(mcu_row));
    TRY(PlanRow(row, block_rows, geometry, mcu_row));
  }
  return {};
}

// Goes through the sizes of a row's runs, and takes those that the crop needs.
Status CropMaker::PlanRow(std::span<const uint8_t> row, const packed::BlockRows& block_rows,
                          const jpeg::CropGeometry& geometry, int mcu_row) {
  const uint8_t* size = row.data();
  size_t at = static_cast<size_t>(block_rows.runs) * sizeof(uint16_t);
  if (at > row.size()) return packed::Damaged("the sizes of runs", 0);
  for (const BlockRow& blocks : block_rows.all()) {
    const int first = geometry.left * blocks.columns / kGroupBlocks;
    const int end = (geometry.right * blocks.columns + kGroupBlocks - 1) / kGroupBlocks;
    const int origin = FirstMcu(geometry) * blocks.columns / kGroupBlocks;
    const auto component = static_cast<size_t>(blocks.component);
    const CropPlane& plane = crop_.plane[component];
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
        runs_.push_back({.at = static_cast<uint32_t>(packed_bytes_ + (at - piece)),
                         .samples = samples + static_cast<uint32_t>(group + from - origin),
                         .component = static_cast<uint8_t>(component),
                         .from = static_cast<uint8_t>(from),
                         .to = static_cast<uint8_t>(to)});
      }
      at += packed::LoadU16(size);
      if (at > row.size()) return packed::Damaged("the sizes of runs", 0);
      if (group < end && group + kRunGroups >= end) {
        pieces_.push_back({row.data() + piece, at - piece});
        packed_bytes_ += at - piece;
      }
    }
  }
  return packed_bytes_ <= decode::kMaxCropBytes ? Status() : NotOnDevices(kTooLarge);
}

// ---- Memory

Status CropMaker::PlanMemory() {
  size_t bytes = sizeof(DeviceCrop);
  const auto take = [&bytes](size_t count) {
    const size_t at = bytes;
    bytes = Aligned(at + count);
    return at;
  };
  crop_.runs = static_cast<uint32_t>(runs_.size());
  crop_.tiles = static_cast<uint32_t>(tiles_.size());
  crop_.runs_at = static_cast<uint32_t>(take(runs_.size() * sizeof(CropRun)));
  crop_.tiles_at = static_cast<uint32_t>(take(tiles_.size() * sizeof(CropTile)));
  const auto take_axis = [&](const AxisTaps& taps, CropAxis& axis) {
    const auto count = static_cast<size_t>(taps.count);
    axis.starts_at = static_cast<uint32_t>(take(count * sizeof(int32_t)));
    axis.weights_at = static_cast<uint32_t>(take(count * axis.pairs * sizeof(WeightPair)));
  };
  take_axis(rows_.taps(), crop_.rows);
  take_axis(columns_.taps(), crop_.columns);
  packed_at_ = take(packed_bytes_ + packed::kRunReach);
  bytes_ = bytes;
  if (bytes_ > decode::kMaxCropBytes || groups_ > decode::kMaxCropGroups) {
    return NotOnDevices(kTooLarge);
  }
  for (CropRun& run : runs_) run.at += static_cast<uint32_t>(packed_at_);
  return {};
}

void CropMaker::Write(uint64_t samples, uint8_t* to) const {
  const auto copy = [to](size_t at, const void* from, size_t bytes) {
    std::memcpy(to + at, from, bytes);
  };
  DeviceCrop crop = crop_;
  crop.samples = samples;
  copy(0, &crop, sizeof(crop));
  copy(crop.runs_at, runs_.data(), runs_.size() * sizeof(CropRun));
  copy(crop.tiles_at, tiles_.data(), tiles_.size() * sizeof(CropTile));
  const auto copy_axis = [&](const AxisTaps& taps, const CropAxis& axis) {
    const auto count = static_cast<size_t>(taps.count);
    copy(axis.starts_at, taps.starts, count * sizeof(int32_t));
    copy(axis.weights_at, taps.weights, count * axis.pairs * sizeof(WeightPair));
  };
  copy_axis(rows_.taps(), crop.rows);
  copy_axis(columns_.taps(), crop.columns);
  size_t at = packed_at_;
  for (const Piece& piece : pieces_) {
    copy(at, piece.from, piece.bytes);
    at += piece.bytes;
  }
  std::memset(to + at, 0, bytes_ - at);
}

}  // namespace stoker
