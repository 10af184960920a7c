#include "transforms/device/crop_maker.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>

#include "core/batch/packed_run.h"
#include "core/numbers/divide_up.h"
#include "core/result/try.h"
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

Status CropMaker::Plan(const packed::PackedFile& file, const Resampling& task, uint64_t room) {
  TRY(PlanBox(file.frame(), task));
  const jpeg::CropGeometry geometry = GeometryOf(file.frame());
  PlanPlanes(geometry, FirstMcuOfRuns(geometry));
  const RunCounts counts = CountRuns(file, geometry);
  crop_.runs = counts.runs;
  TRY(PlanLists(counts.pieces, room));
  TRY(PlanRuns(file, geometry, crop_.plane, ListAt<CropRun>(crop_.runs_at), bits_));
  return SetBytes(Aligned(bits_.end() + packed::kRunReach), room);
}

Status CropMaker::Plan(const IndexedJpeg& file, const Resampling& task, uint64_t room) {
  TRY(PlanBox(file.frame, task));
  const jpeg::CropGeometry geometry = GeometryOf(file.frame);
  PlanPlanes(geometry, geometry.left);
  TRY(PlanCodes(file.frame, crop_, codes_));
  crop_.intervals = CountIntervals(file, geometry);
  TRY(PlanLists(static_cast<uint32_t>(geometry.bottom - geometry.top), room));
  TRY(PlanIntervals(file, geometry, ListAt<CropInterval>(crop_.intervals_at), bits_));
  return SetBytes(Aligned(bits_.end()), room);
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
  if (InSteps(task.interpolation, task.resampler)) {
    return NotOnDevices("by " + TextOf(task.interpolation, task.resampler));
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
  tile_ = {decode::kTileColumns, decode::kTileRows};
  auto& [width, height] = tile_;
  while (true) {
    const int columns = LargestSource(columns_.taps(), width);
    const int rows = LargestSource(rows_.taps(), height);
    if (decode::TileHasRoom(columns, rows, height)) break;
    if (width == 1 && height == 1) return NotOnDevices("so large a box to so small a size");
    (height == 1 || (width > 1 && columns > rows) ? width : height) /= 2;
  }
  crop_.tiles = static_cast<uint32_t>(DivideUp(columns_.taps().count, width) *
                                      DivideUp(rows_.taps().count, height));
  return {};
}

void CropMaker::ListTiles() {
  const int right = columns_.taps().count, bottom = rows_.taps().count;
  auto* tile = ListAt<CropTile>(crop_.tiles_at);
  for (int y = 0; y < bottom; y += tile_.height) {
    for (int x = 0; x < right; x += tile_.width) {
      *tile++ = {.x = static_cast<uint16_t>(x),
                 .y = static_cast<uint16_t>(y),
                 .columns = static_cast<uint8_t>(std::min(tile_.width, right - x)),
                 .rows = static_cast<uint8_t>(std::min(tile_.height, bottom - y))};
    }
  }
}

// ---- Memory

// Plans the crop up to its bits, whose size is not known yet, and lists the tiles. `pieces`: the
// number that the bits will have.
Status CropMaker::PlanLists(uint32_t pieces, uint64_t room) {
  size_t bytes = sizeof(DeviceCrop);
  const auto take = [&bytes](size_t count) {
    const size_t at = bytes;
    bytes = Aligned(at + count);
    return at;
  };
  crop_.runs_at = static_cast<uint32_t>(take(crop_.runs * sizeof(CropRun)));
  crop_.intervals_at = static_cast<uint32_t>(take(crop_.intervals * sizeof(CropInterval)));
  crop_.codes_at = static_cast<uint32_t>(take(crop_.codes * sizeof(CropCodes)));
  crop_.tiles_at = static_cast<uint32_t>(take(crop_.tiles * sizeof(CropTile)));
  const size_t pieces_at = bytes;
  const auto take_axis = [&](const AxisTaps& taps, CropAxis& axis) {
    const auto count = static_cast<size_t>(taps.count);
    axis.starts_at = static_cast<uint32_t>(take(count * sizeof(int32_t)));
    axis.weights_at = static_cast<uint32_t>(take(count * axis.pairs * sizeof(WeightPair)));
  };
  take_axis(rows_.taps(), crop_.rows);
  take_axis(columns_.taps(), crop_.columns);
  TRY(SetBytes(bytes, room));
  TRY(lists_.Grow(pieces_at + pieces * sizeof(CropBits::Piece)));
  bits_.Begin(bytes, ListAt<CropBits::Piece>(pieces_at));
  ListTiles();
  return {};
}

Status CropMaker::SetBytes(size_t bytes, uint64_t room) {
  if (bytes > decode::kMaxCropBytes || groups_ > decode::kMaxCropGroups) {
    return NotOnDevices("boxes that are so large");
  }
  if (bytes > room) return Error{Code::kResourceExhausted, "there is no room for the crop"};
  bytes_ = bytes;
  crop_.bytes = static_cast<uint32_t>(bytes);
  return {};
}

void CropMaker::Write(uint64_t samples, uint8_t* to) const {
  const auto copy = [to](size_t at, const void* from, size_t bytes) {
    if (bytes != 0) std::memcpy(to + at, from, bytes);
  };
  DeviceCrop crop = crop_;
  crop.samples = samples;
  copy(0, &crop, sizeof(crop));
  const uint8_t* const lists = lists_.data();
  copy(crop.runs_at, lists + crop.runs_at, crop.runs * sizeof(CropRun));
  copy(crop.intervals_at, lists + crop.intervals_at, crop.intervals * sizeof(CropInterval));
  copy(crop.codes_at, codes_.data(), crop.codes * sizeof(CropCodes));
  copy(crop.tiles_at, lists + crop.tiles_at, crop.tiles * sizeof(CropTile));
  const auto copy_axis = [&](const AxisTaps& taps, const CropAxis& axis) {
    const auto count = static_cast<size_t>(taps.count);
    copy(axis.starts_at, taps.starts, count * sizeof(int32_t));
    copy(axis.weights_at, taps.weights, count * axis.pairs * sizeof(WeightPair));
  };
  copy_axis(rows_.taps(), crop.rows);
  copy_axis(columns_.taps(), crop.columns);
  uint8_t* const end = bits_.CopyTo(to);
  std::memset(end, 0, static_cast<size_t>(to + bytes_ - end));
}

}  // namespace stoker
