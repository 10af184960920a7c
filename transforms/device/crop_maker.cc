#include "transforms/device/crop_maker.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>

#include "core/packed_run.h"
#include "core/try.h"
#include "transforms/device/jpeg_intervals.h"
#include "transforms/device/packed_runs.h"

namespace stoker {

using decode::CropAxis;
using decode::CropCodes;
using decode::CropInterval;
using decode::CropPlane;
using decode::CropRun;
using decode::CropTile;
using decode::DeviceCrop;
using decode::kCropAlignment;
using decode::kGroupSamples;
using decode::WeightPair;

namespace {

Error NotOnDevices(const std::string& what) {
  return {Code::kUnimplemented, "devices do not resample " + what};
}

size_t Aligned(size_t bytes) {
  return (bytes + kCropAlignment - 1) / kCropAlignment * kCropAlignment;
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
  TRY(PlanBox(file.frame(), task));
  const jpeg::CropGeometry geometry = GeometryOf(file.frame());
  PlanPlanes(geometry, FirstMcuOfRuns(geometry));
  intervals_.clear();
  codes_.clear();
  TRY(PlanRuns(file, geometry, crop_.plane, runs_, bits_));
  return PlanMemory();
}

Status CropMaker::Plan(const IndexedJpeg& file, const Resampling& task) {
  TRY(PlanBox(file.frame, task));
  const jpeg::CropGeometry geometry = GeometryOf(file.frame);
  PlanPlanes(geometry, geometry.left);
  runs_.clear();
  TRY(PlanCodes(file.frame, crop_, codes_));
  TRY(PlanIntervals(file, geometry, intervals_, bits_));
  return PlanMemory();
}

// Plans all but the decoding.
Status CropMaker::PlanBox(const jpeg::FrameHeader& frame, const Resampling& task) {
  crop_ = {};
  if (task.image != frame.size) return Error{Code::kDataLoss, "the image has another size"};
  TRY(PlanAxes(task));
  PlanOutput(task);
  PlanFactors(frame);
  return PlanTiles();
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

jpeg::CropGeometry CropMaker::GeometryOf(const jpeg::FrameHeader& frame) const {
  return {frame, Rect{crop_.x, crop_.y, crop_.width, crop_.height}};
}

// `left`: the first MCU of the samples.
void CropMaker::PlanPlanes(const jpeg::CropGeometry& geometry, int left) {
  crop_.gray = geometry.gray;
  crop_.wide = geometry.wide;
  crop_.tall = geometry.tall;
  const int mcus = geometry.right - left;
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

// ---- Memory

Status CropMaker::PlanMemory() {
  size_t bytes = sizeof(DeviceCrop);
  const auto take = [&bytes](size_t count) {
    const size_t at = bytes;
    bytes = Aligned(at + count);
    return at;
  };
  crop_.runs = static_cast<uint32_t>(runs_.size());
  crop_.intervals = static_cast<uint32_t>(intervals_.size());
  crop_.tiles = static_cast<uint32_t>(tiles_.size());
  crop_.runs_at = static_cast<uint32_t>(take(runs_.size() * sizeof(CropRun)));
  crop_.intervals_at = static_cast<uint32_t>(take(intervals_.size() * sizeof(CropInterval)));
  crop_.codes_at = static_cast<uint32_t>(take(codes_.size() * sizeof(CropCodes)));
  crop_.tiles_at = static_cast<uint32_t>(take(tiles_.size() * sizeof(CropTile)));
  const auto take_axis = [&](const AxisTaps& taps, CropAxis& axis) {
    const auto count = static_cast<size_t>(taps.count);
    axis.starts_at = static_cast<uint32_t>(take(count * sizeof(int32_t)));
    axis.weights_at = static_cast<uint32_t>(take(count * axis.pairs * sizeof(WeightPair)));
  };
  take_axis(rows_.taps(), crop_.rows);
  take_axis(columns_.taps(), crop_.columns);
  bits_at_ = take(bits_.bytes() + (runs_.empty() ? 0 : packed::kRunReach));
  bytes_ = bytes;
  if (bytes_ > decode::kMaxCropBytes || groups_ > decode::kMaxCropGroups) {
    return NotOnDevices("boxes that are so large");
  }
  crop_.bytes = static_cast<uint32_t>(bytes_);
  for (CropRun& run : runs_) run.at += static_cast<uint32_t>(bits_at_);
  for (CropInterval& interval : intervals_) interval.bit += static_cast<uint32_t>(8 * bits_at_);
  return {};
}

void CropMaker::Write(uint64_t samples, uint8_t* to) const {
  const auto copy = [to](size_t at, const void* from, size_t bytes) {
    if (bytes != 0) std::memcpy(to + at, from, bytes);
  };
  DeviceCrop crop = crop_;
  crop.samples = samples;
  copy(0, &crop, sizeof(crop));
  copy(crop.runs_at, runs_.data(), runs_.size() * sizeof(CropRun));
  copy(crop.intervals_at, intervals_.data(), intervals_.size() * sizeof(CropInterval));
  copy(crop.codes_at, codes_.data(), codes_.size() * sizeof(CropCodes));
  copy(crop.tiles_at, tiles_.data(), tiles_.size() * sizeof(CropTile));
  const auto copy_axis = [&](const AxisTaps& taps, const CropAxis& axis) {
    const auto count = static_cast<size_t>(taps.count);
    copy(axis.starts_at, taps.starts, count * sizeof(int32_t));
    copy(axis.weights_at, taps.weights, count * axis.pairs * sizeof(WeightPair));
  };
  copy_axis(rows_.taps(), crop.rows);
  copy_axis(columns_.taps(), crop.columns);
  uint8_t* const end = bits_.CopyTo(to + bits_at_);
  std::memset(end, 0, static_cast<size_t>(to + bytes_ - end));
}

}  // namespace stoker
