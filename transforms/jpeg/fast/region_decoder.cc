#include "transforms/jpeg/fast/region_decoder.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <optional>
#include <utility>

#include "core/memory/buffer.h"
#include "core/result/try.h"
#include "transforms/decode/image_info.h"
#include "transforms/jpeg/fast/entropy/entropy.h"
#include "transforms/jpeg/fast/entropy/mcu_parser.h"
#include "transforms/jpeg/fast/entropy/run_plan.h"
#include "transforms/jpeg/fast/index/crop_geometry.h"
#include "transforms/jpeg/fast/pixels/inverse_dct.h"
#include "transforms/jpeg/fast/pixels/planes.h"
#include "transforms/jpeg/fast/pixels/reduced_dct.h"
#include "transforms/jpeg/fast/progressive/scan_decoder.h"

namespace stoker::jpeg {

struct RegionDecoder::State {
  State(MemoryBudget* budget, const DecodeLimits& l)
      : limits(l), memory(budget != nullptr ? *budget : unlimited) {}

  bool progressive() const { return header->process == Process::kProgressive; }
  size_t ListBlockRows();
  void PlaceBlockRows(int16_t* next);
  void AssignBlocks();
  Fallback Prepare(std::span<const uint8_t> bytes, const CropIndex* index);
  PixelLayout LayoutFor(const RowSink& to) const;
  Status Grow(RowSink& to, const Rect& region, std::initializer_list<Growth> list);
  Status Reserve(RowSink& to, const Rect& region);
  McuRun* Next();
  Fallback NextPart();
  Fallback EndRun();
  void TakeRun();
  void DecodeScans(std::span<const uint8_t> bytes);
  bool TransformRow();
  void Stop(Fallback reason);

  struct BlockRow {  // of a row of MCUs
    int component = 0;
    int row = 0;      // of the component's
    int columns = 1;  // blocks of an MCU
    int groups = 0;
    int16_t* coefficients = nullptr;
    uint8_t* last = nullptr;
  };

  // The next part of a run.
  enum class Part { kSeek, kSkip, kDecode, kSkipBehind, kEnd };

  const DecodeLimits limits;
  const FrameHeader* header = nullptr;
  std::optional<CropGeometry> geometry;
  McuParser parser;
  std::optional<RunPlan> plan;
  std::optional<Run> run;  // none: all runs are done
  std::optional<Run> run_behind;
  Part part = Part::kSeek;
  int mcu_row = 0;  // the row being decoded
  RowSink* sink = nullptr;
  Fallback why = Fallback::kNone;
  std::array<Quantiser, 3> quantiser;

  MemoryBudget unlimited{std::numeric_limits<uint64_t>::max()};
  MemoryBudget& memory;
  Planes planes;
  GrowingBuffer samples{memory};       // the planes'
  GrowingBuffer coefficients{memory};  // all zero unless a row is being decoded
  GrowingBuffer last{memory};
  ScanDecoder scans{memory};  // instead of the parser and `coefficients`
  std::array<BlockRow, 4> block_row;
  int block_rows = 0;
  int transformed = 0;  // of these, the first ones: all, or those of luma
};

using State = RegionDecoder::State;

// Lists the rows of blocks of a row of MCUs, in the order in which an MCU contains their blocks.
size_t State::ListBlockRows() {
  size_t groups = 0;
  block_rows = 0;
  for (int i = 0; i < header->components; ++i) {
    const Component& c = header->component[static_cast<size_t>(i)];
    const int columns = geometry->gray ? 1 : c.columns, rows = geometry->gray ? 1 : c.rows;
    for (int row = 0; row < rows; ++row) {
      BlockRow& r = block_row[static_cast<size_t>(block_rows++)];
      r = {i, row, columns, (geometry->mcus() * columns + kGroupBlocks - 1) / kGroupBlocks};
      groups += static_cast<size_t>(r.groups);
    }
  }
  return groups;
}

// Rows of groups are consecutive in memory, all at a multiple of kGroupStride from the start: the
// unused room for overruns is at the same offsets for all images.
void State::PlaceBlockRows(int16_t* next) {
  uint8_t* next_last = last.data();
  for (BlockRow& r : std::span(block_row).first(static_cast<size_t>(block_rows))) {
    r.coefficients = std::exchange(next, next + ptrdiff_t{r.groups} * kGroupStride);
    r.last = std::exchange(next_last, next_last + ptrdiff_t{r.groups} * kGroupBlocks);
  }
}

void State::AssignBlocks() {
  PlaceBlockRows(reinterpret_cast<int16_t*>(coefficients.data()));
  auto block = parser.blocks().begin();  // in the same order
  for (const BlockRow& r : std::span(block_row).first(static_cast<size_t>(block_rows))) {
    for (int column = 0; column < r.columns; ++column, ++block) {
      block->groups = r.coefficients;
      block->last = r.last;
    }
  }
}

// ---- Run by run

// Goes through parts (tables, a jump, MCUs); returns null only when nothing is left.
McuRun* State::Next() {
  while (run) {
    if (McuRun* const mcus = parser.Next()) return mcus;
    Fallback reason = parser.why();
    if (reason == Fallback::kNone) reason = NextPart();
    if (reason != Fallback::kNone) Stop(reason);
  }
  return nullptr;
}

Fallback State::NextPart() {
  switch (part) {
    case Part::kSeek:
      part = Part::kSkip;
      return run->seek ? parser.Seek(run->first, run->from, run->until) : Fallback::kNone;
    case Part::kSkip:
      part = Part::kDecode;
      parser.Skip(run->skip);
      return Fallback::kNone;
    case Part::kDecode:
      part = Part::kSkipBehind;
      parser.Decode(run->column, run->decode);
      return Fallback::kNone;
    case Part::kSkipBehind:
      part = Part::kEnd;
      parser.Skip(run->skip_behind);
      return Fallback::kNone;
    case Part::kEnd:
      part = Part::kSeek;
      return EndRun();
  }
  return Fallback::kNone;
}

Fallback State::EndRun() {
  if (run->check) {
    if (Fallback reason = parser.CheckArrival(run->until); reason != Fallback::kNone) return reason;
  }
  if (run->ends_row) {
    if (!TransformRow()) return Fallback::kCoefficient;
    planes.Deliver(mcu_row++, *sink);
  }
  TakeRun();
  return Fallback::kNone;
}

void State::TakeRun() {
  run = std::exchange(run_behind, plan->Next());
  if (run_behind && run_behind->seek) parser.Prefetch(run_behind->from, run_behind->until);
}

// Stops decoding.
void State::Stop(Fallback reason) {
  why = reason;
  run.reset();
  std::memset(coefficients.data(), 0, coefficients.capacity());
}

// Decodes a progressive image.
void State::DecodeScans(std::span<const uint8_t> bytes) {
  why = scans.Decode(bytes, limits.ScansOf(header->size));
  for (; why == Fallback::kNone && mcu_row < geometry->bottom; ++mcu_row) {
    PlaceBlockRows(scans.Groups(mcu_row));
    scans.StoreLast(mcu_row, last.data());
    if (!TransformRow()) {
      why = Fallback::kCoefficient;
      break;
    }
    planes.Deliver(mcu_row, *sink);
  }
  scans.FreeExcess();
  if (why != Fallback::kNone) scans.Clear();
}

// Transforms a row of MCUs.
bool State::TransformRow() {
  bool in_range = true;
  for (int i = 0; i < transformed; ++i) {
    const BlockRow& r = block_row[static_cast<size_t>(i)];
    const int side = geometry->side(r.component);
    const Quantiser& q = quantiser[static_cast<size_t>(r.component)];
    uint8_t* const out = planes.Row(r.component, side * r.row);
    const ptrdiff_t stride = planes.stride(r.component);
    in_range &= side == 8 ? InverseDct(q, r.groups, r.coefficients, r.last, out, stride)
                          : ReducedDct(q, side, r.groups, r.coefficients, r.last, out, stride);
  }
  for (int i = transformed; i < block_rows; ++i) {  // chroma that nobody wants
    const BlockRow& r = block_row[static_cast<size_t>(i)];
    std::memset(r.coefficients, 0, static_cast<size_t>(r.groups) * kGroupStride * sizeof(int16_t));
  }
  return in_range;
}

// ---- Start

Fallback State::Prepare(std::span<const uint8_t> bytes, const CropIndex* index) {
  for (size_t i = 0; i < static_cast<size_t>(header->components); ++i) {
    const auto table = static_cast<size_t>(header->component[i].quantisation);
    SetQuantiser(header->quantisation[table], quantiser[i]);
  }
  if (progressive()) return Fallback::kNone;
  if (Fallback reason = parser.Open(bytes, *header); reason != Fallback::kNone) return reason;
  plan.emplace(*geometry, index);
  return index == nullptr ? parser.Start() : Fallback::kNone;
}

PixelLayout State::LayoutFor(const RowSink& to) const {
  return geometry->gray ? PixelLayout::kGray : to.wants();
}

Status State::Grow(RowSink& to, const Rect& region, std::initializer_list<Growth> list) {
  const std::span<const Growth> growths(list.begin(), list.size());
  if (Status begun = to.Begin({LayoutFor(to), region}); !begun) {
    return AndMore(std::move(begun), MissingBytes(growths));
  }
  Status grown = GrowAll(growths);  // new memory is zero
  if (grown.ok() || !progressive()) return grown;
  scans.FreeExcess();
  Error error = std::move(grown).error();
  if (error.advice.empty()) error.advice = "Convert the file to a baseline JPEG";
  return error;
}

// Reserves all memory, including the sink's, before the first row.
Status State::Reserve(RowSink& to, const Rect& region) {
  const size_t groups = ListBlockRows();
  const size_t blocks = groups * kGroupBlocks;
  transformed = block_rows;
  if (to.wants() == PixelLayout::kGray && !geometry->gray) transformed = header->component[0].rows;
  const Growth last_growth{last, blocks}, sample_growth{samples, Planes::BytesFor(*geometry)};
  if (progressive()) {
    scans.Begin(*header, *geometry);
    const auto [kept, masks] = scans.Growths();
    TRY(Grow(to, region, {last_growth, sample_growth, kept, masks}));
  } else {
    const Growth row{coefficients, groups * kGroupStride * sizeof(int16_t)};
    TRY(Grow(to, region, {last_growth, sample_growth, row}));
  }
  std::memset(last.data(), 0, blocks);
  return {};
}

RegionDecoder::RegionDecoder(MemoryBudget* budget, const DecodeLimits& limits)
    : state_(std::make_unique<State>(budget, limits)) {}
RegionDecoder::~RegionDecoder() = default;

Status RegionDecoder::Start(std::span<const uint8_t> bytes, const FrameHeader& header,
                            const Rect& region, Reduction reduction, RowSink& sink,
                            const CropIndex* index) {
  State& s = *state_;
  if (s.run) s.Stop(Fallback::kNone);  // a run that was not completed
  s.header = &header;
  s.sink = &sink;
  s.geometry.emplace(header, region, reduction);
  s.mcu_row = s.geometry->top;
  s.part = State::Part::kSeek;
  s.why = s.Prepare(bytes, index);
  if (s.why != Fallback::kNone) return {};
  TRY(s.Reserve(sink, region));
  s.planes.Start(*s.geometry, s.LayoutFor(sink), s.samples.data());
  if (s.progressive()) {
    s.DecodeScans(bytes);
    return {};
  }
  s.AssignBlocks();
  s.run_behind = s.plan->Next();
  s.TakeRun();
  return {};
}

McuRun* RegionDecoder::Next() { return state_->Next(); }

Fallback RegionDecoder::why() const { return state_->why; }

bool RegionDecoder::EndsInPadding(std::span<const uint8_t> bytes, const FrameHeader& header) {
  State& s = *state_;
  if (s.run) s.Stop(Fallback::kNone);
  McuParser& parser = s.parser;
  if (parser.Open(bytes, header) != Fallback::kNone) return false;
  if (parser.Start() != Fallback::kNone) return false;
  parser.Skip(IndexShape(header, 1).mcus);
  while (McuRun* const mcus = parser.Next()) Parse(*mcus);
  return parser.why() == Fallback::kNone && parser.EndsInPadding();
}

}  // namespace stoker::jpeg
