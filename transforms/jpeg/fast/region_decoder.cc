#include "transforms/jpeg/fast/region_decoder.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "engine/core/buffer.h"
#include "transforms/jpeg/fast/crop_geometry.h"
#include "transforms/jpeg/fast/entropy.h"
#include "transforms/jpeg/fast/inverse_dct.h"
#include "transforms/jpeg/fast/mcu_parser.h"
#include "transforms/jpeg/fast/planes.h"
#include "transforms/jpeg/fast/run_plan.h"

namespace stoker::jpeg {

struct RegionDecoder::State {
  size_t ListBlockRows();
  Status PlaceBlocks();
  Fallback Parse(const Run& run);
  bool TransformRow();
  Fallback Go(RunPlan plan, RowSink& sink);
  void Clear();

  struct BlockRow {  // of a row of MCUs
    int component = 0;
    int row = 0;      // of the component's
    int columns = 1;  // blocks of an MCU
    int groups = 0;
    int16_t* coefficients = nullptr;
    uint8_t* last = nullptr;
  };

  const FrameHeader* header = nullptr;
  std::optional<CropGeometry> geometry;
  McuParser parser;
  std::array<Quantiser, 3> quantiser;

  MemoryBudget uncounted{std::numeric_limits<uint64_t>::max()};
  Planes planes{uncounted};
  GrowingBuffer coefficients{uncounted};  // zero whenever no row is being decoded
  GrowingBuffer last{uncounted};
  std::array<BlockRow, 4> block_row;
  int block_rows = 0;
};

using State = RegionDecoder::State;

// The rows of blocks that a row of MCUs has, in the order in which an MCU holds their blocks.
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

// Rows of groups follow each other in memory, all of them a multiple of kGroupStride from the
// start: where one image writes what nobody reads, all do.
Status State::PlaceBlocks() {
  const size_t groups = ListBlockRows(), bytes = groups * kGroupStride * sizeof(int16_t);
  if (bytes > coefficients.capacity()) {
    if (Status grown = coefficients.Grow(bytes); !grown) return grown;
    Clear();
  }
  if (Status grown = last.Grow(groups * kGroupBlocks); !grown) return grown;
  std::memset(last.data(), 0, groups * kGroupBlocks);

  auto* next = reinterpret_cast<int16_t*>(coefficients.data());
  uint8_t* next_last = last.data();
  auto block = parser.blocks().begin();  // in the same order
  for (int i = 0; i < block_rows; ++i) {
    BlockRow& r = block_row[static_cast<size_t>(i)];
    r.coefficients = std::exchange(next, next + ptrdiff_t{r.groups} * kGroupStride);
    r.last = std::exchange(next_last, next_last + ptrdiff_t{r.groups} * kGroupBlocks);
    for (int column = 0; column < r.columns; ++column, ++block) {
      block->groups = r.coefficients;
      block->last = r.last;
    }
  }
  return {};
}

void State::Clear() { std::memset(coefficients.data(), 0, coefficients.capacity()); }

Fallback State::Parse(const Run& run) {
  Fallback why = Fallback::kNone;
  if (run.seek) why = parser.Seek(run.first, run.from, run.until);
  if (why == Fallback::kNone) why = parser.Skip(run.skip);
  if (why == Fallback::kNone) why = parser.Decode(run.column, run.decode);
  if (why == Fallback::kNone) why = parser.Skip(run.skip_behind);
  if (why == Fallback::kNone && run.check) why = parser.CheckArrival(run.until);
  return why;
}

// A row of MCUs.
bool State::TransformRow() {
  bool in_range = true;
  for (int i = 0; i < block_rows; ++i) {
    const BlockRow& r = block_row[static_cast<size_t>(i)];
    in_range &= InverseDct(quantiser[static_cast<size_t>(r.component)], r.groups, r.coefficients,
                           r.last, planes.Row(r.component, 8 * r.row), planes.stride(r.component));
  }
  return in_range;
}

Fallback State::Go(RunPlan plan, RowSink& sink) {
  if (!plan.indexed()) {
    if (Fallback why = parser.Start(); why != Fallback::kNone) return why;
  }
  int row = geometry->top;
  while (const std::optional<Run> run = plan.Next()) {
    if (Fallback why = Parse(*run); why != Fallback::kNone) return why;
    if (!run->ends_row) continue;
    if (!TransformRow()) return Fallback::kCoefficient;
    planes.Deliver(row++, sink);
  }
  return Fallback::kNone;
}

RegionDecoder::RegionDecoder() : state_(std::make_unique<State>()) {}
RegionDecoder::~RegionDecoder() = default;

Result<Fallback> RegionDecoder::Decode(std::span<const uint8_t> bytes, const FrameHeader& header,
                                       const Rect& region, RowSink& sink, const CropIndex* index) {
  State& s = *state_;
  s.header = &header;
  s.geometry.emplace(header, region);
  if (Fallback why = s.parser.Open(bytes, header); why != Fallback::kNone) return why;
  for (size_t i = 0; i < static_cast<size_t>(header.components); ++i) {
    const auto table = static_cast<size_t>(header.component[i].quantisation);
    SetQuantiser(header.quantisation[table], s.quantiser[i]);
  }
  if (Status placed = s.PlaceBlocks(); !placed) return std::move(placed).error();
  if (Status started = s.planes.Start(*s.geometry); !started) return std::move(started).error();
  const PixelLayout layout = s.geometry->gray ? PixelLayout::kGray : PixelLayout::kPlanar;
  if (Status begun = sink.Begin({layout, region}); !begun) return std::move(begun).error();
  const Fallback why = s.Go(RunPlan(*s.geometry, index), sink);
  if (why != Fallback::kNone) s.Clear();
  return why;
}

}  // namespace stoker::jpeg
