#include "transforms/plan/plan.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "core/batch/deferred_ops.h"
#include "transforms/augment/geometry/affine.h"
#include "transforms/augment/tile.h"
#include "transforms/decode/orientation.h"
#include "transforms/plan/draw.h"
#include "transforms/plan/moved_objects.h"
#include "transforms/plan/shape_masks.h"
#include "transforms/plan/views_sink.h"
#include "transforms/resize/emit.h"
#include "transforms/resize/nearest_rows.h"
#include "transforms/shapes/polygon_fill.h"
#include "transforms/spec/transform_table.h"
#include "transforms/wide/wide_decoder.h"

namespace stoker {

namespace {

std::vector<int64_t> ShapeOf(ImageSize size, Layout layout, int channels) {
  if (layout == Layout::kNchw) return {channels, size.height, size.width};
  return {size.height, size.width, channels};
}

// The bytes of steps in addition to the tile.
struct StepBytes {
  uint64_t sum() const { return std::accumulate(own.begin(), own.end(), shared); }
  uint64_t shared = 0;                                            // by all transforms: the most
  std::array<uint64_t, std::variant_size_v<AnyTransform>> own{};  // of one type: the most
};

void Add(const Transform& transform, ImageSize tile, StepBytes& bytes) {
  if (const std::vector<Transform>* held = HeldBy(transform)) {
    for (const Transform& each : *held) Add(each, tile, bytes);
    return;
  }
  const TransformRow& row = RowOf(transform);
  const Result<size_t> affine = AffineScratchBytes(tile);
  bytes.shared =
      std::max<uint64_t>(bytes.shared, row.scratch != nullptr ? row.scratch(transform, tile)
                                                              : (affine.ok() ? *affine : 0));
  if (row.own_memory == nullptr) return;
  uint64_t& own = bytes.own[transform.index()];
  own = std::max(own, row.own_memory(transform, tile));
}

}  // namespace

const Plan& Plan::piece(size_t index) const {
  if (pieces_.empty()) return *this;
  index %= options_.pieces.size();
  return index == 0 ? *this : pieces_[index - 1];
}

// Its options are those of a row that has no conversion and that no device finishes.
Plan Plan::OfMask(const Piece& mask) const {
  Plan plan = *this;
  plan.mask_ = mask;
  plan.options_.dtype = mask.kind == Piece::Kind::kMask16 ? DType::kU16 : DType::kU8;
  plan.options_.layout = Layout::kNhwc;
  plan.options_.decode = DecodeSize::kFull;
  plan.options_.defer_to_device = plan.options_.decode_on_device = false;
  return plan;
}

bool Plan::has_masks() const { return mask_ || std::ranges::any_of(pieces_, &Plan::has_masks); }

std::vector<int64_t> Plan::row_shape(ImageSize size) const {
  if (mask_) return {size.height, size.width};
  return ShapeOf(size, layout(), channels());
}
std::vector<int64_t> Plan::finished_shape() const {
  return mask_ ? row_shape() : ShapeOf(output_, options_.layout, channels());
}

size_t Plan::row_bytes() const {
  const auto each = static_cast<size_t>(mask_ ? 1 : channels());
  return static_cast<size_t>(output_.width) * static_cast<size_t>(output_.height) * each *
             SizeOf(dtype()) +
         staged_bytes();
}

// Erasing writes final values.
size_t Plan::staged_bytes() const {
  const auto erases = [](const Transform& t) { return std::holds_alternative<RandomErasing>(t); };
  if (!pads_batches() || mask_ || dtype() == DType::kU8) return 0;
  if (std::ranges::any_of(transforms_, erases)) return 0;
  return static_cast<size_t>(channels()) * static_cast<size_t>(output_.width) *
             static_cast<size_t>(output_.height) +
         kEmitOverread;
}

uint32_t Plan::boxes() const {
  if (mask_) return 0;
  const auto erasing = std::count_if(
      transforms_.begin(), transforms_.end(),
      [](const Transform& transform) { return std::holds_alternative<RandomErasing>(transform); });
  return static_cast<uint32_t>(erasing) + (pads_finished_ ? 2 : 0);
}

size_t Plan::work_bytes() const { return options_.defer_to_device ? DeferredOpsBytes(boxes()) : 0; }

uint64_t Plan::extra_bytes() const {
  constexpr uint64_t kView = 128 << 10;  // of a resampler without a window of decoded rows
  const uint32_t count = (has_canvas_ ? times_objects() : copies_) * options_.max_objects;
  const uint64_t objects =
      options_.objects.empty()
          ? 0
          : GrowingBuffer::MappedBytes(MovedObjects::BytesFor(options_.objects, count));
  const ImageSize most{std::max(tile_.width, output_.width),
                       std::max(tile_.height, output_.height)};
  const bool pastes = copies_ > 1 || has_canvas_;
  uint64_t shapes =
      options_.draws_shapes ? ShapeMasks::BytesFor(pastes ? most : output_, count) : 0;
  if (pastes) shapes += GrowingBuffer::MappedBytes(Tile{nullptr, most}.plane_bytes());
  if (mosaic_ && options_.draws_shapes) {
    shapes += GrowingBuffer::MappedBytes(count * sizeof(std::optional<Box>));
  }
  if (has_canvas_) shapes += CanvasBytes();
  uint64_t tiles = tile_bytes() + interleaved() * (objects + shapes);
  if (!takes_steps()) {
    tiles += interleaved() * GrowingBuffer::MappedBytes(WideDecoder::kKeptBytes);
  }
  if (has_masks()) {
    return tiles + interleaved() * NearestRows::BytesFor(most);
  }
  if (views() == 1) return tiles;
  return tiles + interleaved() * (ViewsSink::kWhole + kView * (views() - 1));
}

// Returns the bytes of the objects on a canvas and of what draws their shapes, in addition to those
// that other rows need for these.
uint64_t Plan::CanvasBytes() const {
  uint64_t of_object = 0;
  for (const ObjectField& field : options_.objects) of_object += field.bytes;
  uint64_t bytes = GrowingBuffer::MappedBytes(uint64_t{parts()} * options_.max_objects * of_object);
  if (!options_.draws_shapes) return bytes;
  const Result<size_t> turning = AffineScratchBytes(tile_);
  for (const size_t each : {Tile{nullptr, tile_}.plane_bytes(), Tile{nullptr, tile_}.plane_bytes(),
                            PolygonFill::ScratchBytes(tile_), turning.ok() ? *turning : 0}) {
    bytes += GrowingBuffer::MappedBytes(each + kTileOverread);
  }
  return bytes;
}

uint64_t Plan::tile_bytes() const {
  uint64_t bytes = 0;
  for (size_t i = 0; i < views(); ++i) bytes += view(i).view_tile_bytes();
  return bytes;
}

uint64_t Plan::view_tile_bytes() const {
  constexpr uint64_t kRoundingUp = 16 << 10;  // for rounding up buffer sizes
  StepBytes steps;
  bool tile = false;
  for (size_t i = 0; i < sites_.size(); ++i) {
    if (sites_[i] != ExecutionSite::kTile) continue;
    tile = true;
    Add(transforms_[i], tile_, steps);
  }
  const uint64_t pixels = static_cast<uint64_t>(tile_.width) * static_cast<uint64_t>(tile_.height);
  const uint64_t tiles = pastes_others() ? 2 : interleaved();
  return tile ? tiles * (2 * 3 * pixels + steps.sum() + kRoundingUp)
              : 0;  // one tile is read, one is written
}

std::string Plan::Describe() const {
  if (views() == 1) {
    std::string text = DescribeView();
    for (size_t i = 0; i < pieces_.size(); ++i) {
      if (!pieces_[i].mask_) continue;
      text += "; piece " + std::to_string(i + 1) + ": " + pieces_[i].DescribeView();
    }
    return text;
  }
  std::string text;
  for (size_t i = 0; i < views(); ++i) {
    text += (i == 0 ? "view 0: " : "; view " + std::to_string(i) + ": ") + view(i).DescribeView();
  }
  return text + "; decoded once";
}

std::string Plan::DescribeView() const {
  if (mask_) {
    return std::string("a mask, moved as piece 0 by nearest pixels, to ") + NameOf(dtype()) + " " +
           std::to_string(output_.height) + " × " + std::to_string(output_.width);
  }
  std::string text;
  for (const Transform& transform : transforms_) text += std::string(NameOf(transform)) + ", ";
  text += "fused: decode the box only";
  bool scales = options_.decode == DecodeSize::kScaled;
  std::string filters;
  for (const Transform& transform : transforms_) {
    const std::optional<ResamplingFilter> filter = FilterOf(transform);
    if (!filter) continue;
    filters += ", " + TextOf(filter->interpolation, filter->resampler);
    if (filter->interpolation != Interpolation::kNearest) {
      filters += filter->antialias ? ", antialiased" : ", not antialiased";
    }
    if (filter->resampler != ResampledAs::kPillow) scales = false;  // see ReductionOf
  }
  text += (scales ? ", scaled where it is large" : "") + filters;
  for (size_t i = 0, listed = 0; i < sites_.size(); ++i) {
    if (sites_[i] != ExecutionSite::kTile) continue;
    text += (listed++ == 0 ? ", on the tile: " : ", ") + std::string(NameOf(transforms_[i]));
  }
  text += std::string(", to ") + NameOf(options_.dtype);
  const char* before = " ";
  for (const int64_t side : finished_shape()) {
    text += before + std::to_string(side);
    before = " × ";
  }
  if (pads()) text += pads_batches() ? " at most, padded to the batch's largest" : ", padded";
  if (options_.decode_on_device) text += ", JPEGs decoded on the device";
  if (options_.defer_to_device) text += ", finished on the device";
  return text;
}

}  // namespace stoker
