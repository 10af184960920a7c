#include "transforms/jpeg/fast/region_decoder.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "engine/core/buffer.h"
#include "transforms/jpeg/fast/crop_geometry.h"
#include "transforms/jpeg/fast/entropy.h"
#include "transforms/jpeg/fast/huffman.h"
#include "transforms/jpeg/fast/inverse_dct.h"
#include "transforms/jpeg/fast/planes.h"
#include "transforms/jpeg/fast/scan_data.h"

namespace stoker::jpeg {

namespace {

// MCUs parsed at a time at most, so that no predictor can overflow on the way.
constexpr int kMostMcus = 1 << 16;
constexpr int kMostPredictor = 1 << 30;
static_assert(int64_t{kMostMcus} * 4 * ((1 << kMaxDcSize) - 1) < kMostPredictor);

}  // namespace

struct RegionDecoder::State {
  Fallback BuildTables();
  size_t ListBlockRows();
  Status PlaceBlocks();
  Status Start(std::span<const uint8_t> bytes);
  Fallback Run(RowSink& sink);
  Fallback DecodeRow();
  bool TransformRow();
  Fallback Parse(int count, bool store);
  Fallback ParseSegment(int count, bool store, int first);
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
  std::array<DcTable, 4> dc;
  std::array<AcTable, 4> ac;
  std::array<SkipTable, 4> skip;
  std::array<Quantiser, 3> quantiser;
  ScanData data;
  EntropyState entropy;
  int until_restart = 0;  // MCUs, where there are restart intervals
  int restarts = 0;
  int column = 0;  // of the next MCU that is stored

  MemoryBudget uncounted{std::numeric_limits<uint64_t>::max()};
  Planes planes{uncounted};
  GrowingBuffer coefficients{uncounted};  // zero whenever no row is being decoded
  GrowingBuffer last{uncounted};
  std::array<BlockRow, 4> block_row;
  int block_rows = 0;
};

using State = RegionDecoder::State;

// ---- What the header says

// Only the tables that the scan uses, each once.
Fallback State::BuildTables() {
  unsigned have_dc = 0, have_ac = 0;
  for (int i = 0; i < header->components; ++i) {
    const auto at = static_cast<size_t>(i);
    const Component& c = header->component[at];
    const auto d = static_cast<size_t>(c.dc), a = static_cast<size_t>(c.ac);
    if ((have_dc >> d & 1) == 0 && !BuildDcTable(header->dc[d], dc[d])) return Fallback::kTables;
    if ((have_ac >> a & 1) == 0) {
      if (!BuildAcTable(header->ac[a], ac[a])) return Fallback::kTables;
      BuildSkipTable(header->ac[a], skip[a]);
    }
    have_dc |= 1u << d;
    have_ac |= 1u << a;
    SetQuantiser(header->quantisation[static_cast<size_t>(c.quantisation)], quantiser[at]);
  }
  return Fallback::kNone;
}

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
  entropy.blocks = 0;
  for (int i = 0; i < block_rows; ++i) {
    BlockRow& r = block_row[static_cast<size_t>(i)];
    r.coefficients = std::exchange(next, next + ptrdiff_t{r.groups} * kGroupStride);
    r.last = std::exchange(next_last, next_last + ptrdiff_t{r.groups} * kGroupBlocks);
    const Component& c = header->component[static_cast<size_t>(r.component)];
    const auto d = static_cast<size_t>(c.dc), a = static_cast<size_t>(c.ac);
    for (int column = 0; column < r.columns; ++column) {
      entropy.block[static_cast<size_t>(entropy.blocks++)] = {
          &dc[d], &ac[a], &skip[a], r.component, r.coefficients, r.last, r.columns, column};
    }
  }
  return {};
}

void State::Clear() { std::memset(coefficients.data(), 0, coefficients.capacity()); }

// ---- Parsing

// `count` MCUs without a restart marker among them.
Fallback State::ParseSegment(int count, bool store, int first) {
  while (count > 0) {
    const int done = store ? DecodeMcus(entropy, first, count) : SkipMcus(entropy, count);
    if (entropy.damaged) return Fallback::kBits;
    if (ScanData::Passed(entropy) && !data.Provide(entropy)) return Fallback::kBits;
    first += done;
    count -= done;
  }
  return Fallback::kNone;
}

// The next `count` MCUs. With `store`, they are those of the region from `column` on.
Fallback State::Parse(int count, bool store) {
  while (count > 0) {
    int step = std::min(count, kMostMcus);
    if (header->restart_interval != 0) {
      if (until_restart == 0) {
        if (!data.Restart(restarts++ % 8, entropy)) return Fallback::kRestart;
        entropy.dc = {};
        until_restart = header->restart_interval;
      }
      step = std::min(step, until_restart);
      until_restart -= step;
    }
    if (Fallback why = ParseSegment(step, store, column); why != Fallback::kNone) return why;
    for (const int32_t predictor : entropy.dc) {
      if (std::abs(predictor) >= kMostPredictor) return Fallback::kBits;
    }
    if (store) column += step;
    count -= step;
  }
  return Fallback::kNone;
}

// ---- A row of MCUs

Fallback State::DecodeRow() {
  const CropGeometry& g = *geometry;
  column = 0;
  Fallback why = Parse(g.left, false);
  if (why == Fallback::kNone) why = Parse(g.mcus(), true);
  if (why == Fallback::kNone) why = Parse(g.mcus_across - g.right, false);
  if (why != Fallback::kNone) return why;
  return TransformRow() ? Fallback::kNone : Fallback::kCoefficient;
}

bool State::TransformRow() {
  bool in_range = true;
  for (int i = 0; i < block_rows; ++i) {
    const BlockRow& r = block_row[static_cast<size_t>(i)];
    in_range &= InverseDct(quantiser[static_cast<size_t>(r.component)], r.groups, r.coefficients,
                           r.last, planes.Row(r.component, 8 * r.row), planes.stride(r.component));
  }
  return in_range;
}

Status State::Start(std::span<const uint8_t> bytes) {
  data.Start(bytes.subspan(header->scan_offset));
  entropy.reader = {};
  entropy.dc = {};
  entropy.damaged = false;
  until_restart = header->restart_interval;
  restarts = 0;
  if (Status placed = PlaceBlocks(); !placed) return placed;
  return planes.Start(*geometry);
}

Fallback State::Run(RowSink& sink) {
  const CropGeometry& g = *geometry;
  if (!data.Provide(entropy)) return Fallback::kBits;
  if (Fallback why = Parse(g.top * g.mcus_across, false); why != Fallback::kNone) return why;
  for (int row = g.top; row < g.bottom; ++row) {
    if (Fallback why = DecodeRow(); why != Fallback::kNone) return why;
    planes.Deliver(row, sink);
  }
  return Parse((g.parsed_rows - g.bottom) * g.mcus_across, false);
}

RegionDecoder::RegionDecoder() : state_(std::make_unique<State>()) {}
RegionDecoder::~RegionDecoder() = default;

Result<Fallback> RegionDecoder::Decode(std::span<const uint8_t> bytes, const FrameHeader& header,
                                       const Rect& region, RowSink& sink) {
  State& s = *state_;
  s.header = &header;
  s.geometry.emplace(header, region);
  if (Fallback why = s.BuildTables(); why != Fallback::kNone) return why;
  if (Status started = s.Start(bytes); !started) return std::move(started).error();
  const PixelLayout layout = s.geometry->gray ? PixelLayout::kGray : PixelLayout::kPlanar;
  if (Status begun = sink.Begin({layout, region}); !begun) return std::move(begun).error();
  const Fallback why = s.Run(sink);
  if (why != Fallback::kNone) s.Clear();
  return why;
}

}  // namespace stoker::jpeg
