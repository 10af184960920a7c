#include "transforms/packed/decoder.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>

#include "core/memory/buffer.h"
#include "core/result/try.h"
#include "transforms/jpeg/fast/index/crop_geometry.h"
#include "transforms/jpeg/fast/pixels/planes.h"
#include "transforms/packed/packed_file.h"
#include "transforms/packed/unpack.h"

namespace stoker {

using packed::BlockRow;
using packed::kGroupBlocks;
using packed::kRunGroups;

struct PackedJpegDecoder::State {
  State(const DecodeLimits& l, MemoryBudget* budget)
      : limits(l), memory(budget != nullptr ? *budget : unlimited) {}

  Status Start(const Rect& region, Reduction reduction, RowSink& sink);
  Status DecodeRow(int mcu_row, RowSink& sink);
  Status TransformRow(const BlockRow& row);

  DecodeLimits limits;
  MemoryBudget unlimited{std::numeric_limits<uint64_t>::max()};
  MemoryBudget& memory;
  GrowingBuffer samples{memory};  // the planes'
  jpeg::Planes planes;
  packed::RunReader reader;
  std::array<packed::Quantiser, 3> quantiser;

  // State of the open image.
  bool opened = false;
  packed::PackedFile file;

  // State of the region being decoded.
  std::optional<packed::BlockRows> rows;
  size_t transformed = 0;  // of a row of MCUs, the first ones: all, or those of luma
  std::optional<jpeg::CropGeometry> geometry;  // its left edge is that of a group in all components
  int left = 0;                                // the first MCU that the region needs
};

PackedJpegDecoder::PackedJpegDecoder(const DecodeLimits& limits, MemoryBudget* budget)
    : state_(std::make_unique<State>(limits, budget)) {}
PackedJpegDecoder::~PackedJpegDecoder() = default;
PackedJpegDecoder::PackedJpegDecoder(PackedJpegDecoder&&) noexcept = default;
PackedJpegDecoder& PackedJpegDecoder::operator=(PackedJpegDecoder&&) noexcept = default;

namespace {

ImageInfo InfoOf(const jpeg::FrameHeader& frame) {
  return {.size = frame.size,
          .orientation = frame.orientation,
          .components = frame.components,
          .chroma_columns = frame.mcu_columns(),
          .chroma_rows = frame.mcu_rows(),
          .format = ImageFormat::kPackedJpeg};
}

}  // namespace

Result<ImageInfo> PackedJpegDecoder::Open(std::span<const uint8_t> bytes) {
  State& s = *state_;
  s.opened = false;
  ASSIGN_OR_RETURN(s.file, packed::PackedFile::Open(bytes));
  const jpeg::FrameHeader& frame = s.file.frame();
  TRY(CheckSize(frame.size, s.limits, sizeof(packed::FixedPart)));
  s.opened = true;
  return InfoOf(frame);
}

const packed::PackedFile& PackedJpegDecoder::file() const { return state_->file; }

Status PackedJpegDecoder::Decode(const Rect& region, RowSink& sink, Reduction reduction) {
  State& s = *state_;
  if (!std::exchange(s.opened, false)) {
    return Error{Code::kFailedPrecondition, "Decode was called without a successful Open"};
  }
  if (reduction > MaxReduction(InfoOf(s.file.frame()))) {
    return Error{Code::kInvalidArgument, "the image cannot be decoded at so small a size"};
  }
  if (!Inside(region, Reduced(s.file.frame().size, reduction))) {
    return Error{Code::kInvalidArgument, "the region to decode is not inside the image"};
  }
  TRY(s.Start(region, reduction, sink));
  for (int row = s.geometry->top; row < s.geometry->bottom; ++row) TRY(s.DecodeRow(row, sink));
  return {};
}

// Reserves all memory, including the sink's, before the first row.
Status PackedJpegDecoder::State::Start(const Rect& region, Reduction reduction, RowSink& sink) {
  const jpeg::FrameHeader& frame = file.frame();
  rows.emplace(frame);
  geometry.emplace(frame, region, reduction);
  left = geometry->left;
  geometry->left -= left % kGroupBlocks;
  const PixelLayout layout = geometry->gray ? PixelLayout::kGray : sink.wants();
  transformed = static_cast<size_t>(rows->count);
  if (layout == PixelLayout::kGray && !geometry->gray) {
    transformed = static_cast<size_t>(frame.component[0].rows);
  }
  const Growth growths[] = {{samples, jpeg::Planes::BytesFor(*geometry)}};
  if (Status begun = sink.Begin({layout, region}); !begun) {
    return AndMore(std::move(begun), MissingBytes(growths));
  }
  TRY(GrowAll(growths));
  planes.Start(*geometry, layout, samples.data());
  for (size_t i = 0; i < static_cast<size_t>(frame.components); ++i) {
    const auto table = static_cast<size_t>(frame.component[i].quantisation);
    SetQuantiser(frame.quantisation[table], quantiser[i]);
  }
  return {};
}

Status PackedJpegDecoder::State::DecodeRow(int mcu_row, RowSink& sink) {
  TRY(reader.Start(file, mcu_row, rows->runs));
  for (const BlockRow& row : rows->all().first(transformed)) TRY(TransformRow(row));
  planes.Deliver(mcu_row, sink);
  return {};
}

// Transforms the groups of a row of blocks that the region needs.
Status PackedJpegDecoder::State::TransformRow(const BlockRow& row) {
  const int first = left * row.columns / kGroupBlocks;
  const int end = (geometry->right * row.columns + kGroupBlocks - 1) / kGroupBlocks;
  const int origin = geometry->left * row.columns / kGroupBlocks;  // of the planes
  const int side = geometry->side(row.component);
  const packed::Quantiser& q = quantiser[static_cast<size_t>(row.component)];
  const ptrdiff_t stride = planes.stride(row.component);
  uint8_t* const samples_of_row = planes.Row(row.component, side * row.row);
  reader.Skip(first / kRunGroups);
  for (int g = first; g < end;) {
    const uint8_t* const run = reader.Next();
    if (run == nullptr) return reader.WrongSizes();
    const int from = g % kRunGroups, to = std::min(kRunGroups, end - (g - from));
    uint8_t* const out = samples_of_row + ptrdiff_t{g - origin} * side * kGroupBlocks;
    if (side == 8) {
      TransformRun(run, from, to, q, out, stride);
    } else {
      ReduceRun(run, from, to, q, side, out, stride);
    }
    g += to - from;
  }
  reader.Skip(row.runs() - (end + kRunGroups - 1) / kRunGroups);
  return {};
}

}  // namespace stoker
