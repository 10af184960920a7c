// Plan: a list of transforms compiled once, applied to each sample.
//
// Draw is separate from apply: Draw turns a sample's key and its image's size into a Geometry, a
// pure function; Apply decodes only the box that the geometry names and writes the finished row.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "core/image.h"
#include "core/layout.h"
#include "core/memory_budget.h"
#include "core/random.h"
#include "core/result.h"
#include "core/stage_times.h"
#include "transforms/decode/image_info.h"
#include "transforms/decode/orientation.h"
#include "transforms/jpeg/paths.h"
#include "transforms/plan/drawn.h"
#include "transforms/plan/image_feed.h"
#include "transforms/spec/transform.h"

namespace stoker {

struct ImageLane;
struct PixelOutput;

struct PlanOptions {
  // kU8: 0…255; kF16, kBF16, kF32: value / 255, or normalised where asked for.
  DType dtype = DType::kU8;
  Layout layout = Layout::kNhwc;
  bool exif_orientation = true;  // turn images as their EXIF tag says
  // Rows are read long after they have been written, as those of a batch are: large ones are
  // written past the caches.
  bool read_later = false;
  // A device does the rest (core/row_work.h): rows are u8 and NHWC, neither normalised nor
  // erased, and perhaps yet to be mirrored; what there is to do is written beside each.
  bool finish_on_device = false;
  DecodeLimits limits{};
};

// What one worker keeps from sample to sample, for two in turns. One thread at a time.
class Workspace;

// How the images that were applied with a workspace have been decoded since it was made.
DecodePaths PathsOf(const Workspace& workspace);

// What it holds of the budget, and what gives that back: it grows again with the next image.
uint64_t MemoryOf(const Workspace& workspace);
void FreeMemoryOf(Workspace& workspace);

// Nanoseconds that each transform of the plan has taken since then, where it was not fused.
std::vector<uint64_t> TransformTimesOf(const Workspace& workspace);

// Where a transform is done.
enum class Place : uint8_t {
  kFused,  // with decoding and resizing: it has no pass of its own
  kTile,   // on the resized image, in a worker's memory; where that is needed for a sample
  kRow,    // on the finished row
};

// Immutable; any thread.
class Plan {
 public:
  // InvalidArgument names the transform (by place and name) and the option: a size that is not
  // positive, a scale or ratio out of order, a second resampling, an output that is not of one
  // size, Normalize together with kU8 or not at the end, …
  static Result<Plan> Compile(std::vector<Transform> transforms, const PlanOptions& options = {});

  ImageSize output_size() const { return output_; }
  // Of the rows that Apply writes.
  DType dtype() const { return options_.finish_on_device ? DType::kU8 : options_.dtype; }
  Layout layout() const { return options_.finish_on_device ? Layout::kNhwc : options_.layout; }
  std::vector<int64_t> row_shape() const;  // {height, width, 3}, or {3, height, width}
  size_t row_bytes() const;                // all of it
  // Of what a device makes of them: options() has its type and layout, scale() and bias() the rest.
  std::vector<int64_t> finished_shape() const;
  uint32_t boxes() const;     // RandomErasing in the list: so many follow a row's RowWork
  size_t work_bytes() const;  // of a row; 0 where nothing is left to a device

  // `image`: size as viewed, both sides at least 1. Replaces `drawn`. InvalidArgument where the
  // image is too small for a RandomCrop.
  Status Draw(const DrawKey& key, ImageSize image, DrawnSample& drawn) const;

  // Memory is charged to `budget`, which outlives the workspace.
  std::unique_ptr<Workspace, void (*)(Workspace*)> MakeWorkspace(MemoryBudget& budget) const;

  // Decodes what `samples` gives and writes the rows, until there is nothing left to do. Two
  // samples are decoded in turns, which is faster than one behind the other. Adds to `times`,
  // before each Done.
  void ApplyAll(ImageFeed& samples, Workspace& workspace, StageTimes& times) const;

  // The same for one sample.
  Status Apply(std::span<const uint8_t> bytes, const DrawKey& key, Workspace& workspace, void* row,
               StageTimes& times, std::span<const uint8_t> crop_index = {},
               void* work = nullptr) const;

  // The same for an image that is decoded already, 1 to kMostSidePixels on each side, gray,
  // interleaved or planar RGB: the same draws, the same bytes as from a lossless file of it. (There
  // is no EXIF tag to turn it by.) Reads no byte outside the image's rows. InvalidArgument names a
  // side.
  Status Apply(const ImageView& image, const DrawKey& key, Workspace& workspace, void* row,
               StageTimes& times, void* work = nullptr) const;

  // One line: what was fused. Explain (explain.h) says more.
  std::string Describe() const;

  const PlanOptions& options() const { return options_; }
  const std::vector<Transform>& transforms() const { return transforms_; }
  const std::vector<Place>& places() const { return places_; }  // theirs
  uint64_t tile_bytes() const;  // of a workspace, beside what every plan's needs
  PixelOutput OutputTo(void* row) const;
  // The output is value × scale + bias for each channel; {1/255, 0} without Normalize. Not for kU8.
  const std::array<float, 3>& scale() const { return scale_; }
  const std::array<float, 3>& bias() const { return bias_; }

 private:
  class Drawing;
  Plan() = default;
  bool Begin(ImageFeed& feed, ImageLane& lane) const;
  Result<bool> Open(const EncodedImage& image, ImageLane& lane) const;
  Result<Rect> StartRow(const DrawKey& key, ImageSize stored, Orientation orientation,
                        ImageLane& lane) const;
  void End(ImageFeed& feed, ImageLane& lane) const;
  Status FinishRow(ImageLane& lane) const;

  PlanOptions options_;
  std::vector<Transform> transforms_;
  std::vector<Place> places_;
  size_t normalize_place_ = 0;  // behind which erased values are the row's own
  Normalize normalize_;
  ImageSize output_;
  std::array<float, 3> scale_{};
  std::array<float, 3> bias_{};
};

}  // namespace stoker
