// The memory in which a worker applies a plan: Workspace, and its parts for each of two samples.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/memory/buffer.h"
#include "core/memory/memory_budget.h"
#include "core/result/result.h"
#include "transforms/augment/augmenter.h"
#include "transforms/augment/geometry/elastic.h"
#include "transforms/decode/decoding.h"
#include "transforms/decode/gray_rows.h"
#include "transforms/decode/image_decoder.h"
#include "transforms/device/crop_maker.h"
#include "transforms/plan/drawn.h"
#include "transforms/plan/moved_objects.h"
#include "transforms/plan/plan.h"
#include "transforms/plan/shape_masks.h"
#include "transforms/plan/views_sink.h"
#include "transforms/resize/nearest_rows.h"
#include "transforms/resize/resampler.h"
#include "transforms/wide/wide_decoder.h"

namespace stoker {

// The resampler and augmenter of one view of a sample in progress.
struct ViewContext {
  ViewContext(size_t transforms, MemoryBudget& budget, Displacements& displacements)
      : displacements(&displacements),
        resampler(budget),
        augmenter(budget, &displacements),
        other(budget, &displacements),
        of_shapes(budget),
        objects(budget),
        shapes(budget),
        shape_boxes(budget),
        values(budget),
        transform_ns(transforms) {}

  // An image that is on the canvas of a row.
  struct OnCanvas {
    DrawnSample drawn;  // as if it were alone on the tile
    ImageSize size;     // as viewed
    std::vector<ShapeMask> masks;
    std::vector<uint16_t> values;  // of the masks
    std::vector<uint32_t> kept;    // those of its objects that are in the row
    uint32_t first = 0;            // of these, in the row's
    size_t steps = 0;              // of `drawn`, before those of the canvas
  };

  // Executes the drawn steps on the tile, and counts their time by transform.
  Status ApplySteps();
  // Returns what has the shapes of a sample that is drawn as far as `of`: its image, or those on
  // the canvas. Valid until the next call, and while `of` does not change.
  std::span<const ShapeMasks::Image> ImagesOf(const DrawnSample& of, ImageSize viewed);

  Displacements* displacements;
  Resampler resampler;
  Augmenter augmenter;
  Augmenter other;      // with the image whose objects are pasted, or, before it, the row's own
  Augmenter of_shapes;  // while `augmenter` has a canvas
  DrawnSample drawn;
  MovedObjects objects;
  ShapeMasks shapes;
  GrowingBuffer shape_boxes;  // for MovedObjects::CropToMosaic
  std::vector<ShapeMasks::Image> images;
  std::array<OnCanvas, kMostParts> canvas;              // by DrawKey::part
  uint32_t on_canvas = 0;                               // images whose pixels are on it
  DrawKey row;                                          // of the last image that was begun
  GrowingBuffer values;                                 // of the objects on the canvas
  std::vector<std::span<const uint8_t>> object_fields;  // in it
  std::optional<uint32_t> failed;  // the part whose image is the cause of the canvas's error
  OutputRows to;                   // its destinations: of a further view only the row
  std::vector<uint64_t> transform_ns;
  uint64_t augment_ns = 0;
};

// The decoder of one sample in progress, and its views.
struct ImageContext {
  // `transforms`: the number that each view has.
  ImageContext(const DecodeLimits& limits, const std::vector<size_t>& transforms,
               MemoryBudget& budget, Displacements& displacements)
      : decoder(limits, &budget),
        crop_index(budget),
        all_views(budget),
        mask_rows(budget),
        gray_rows(&budget),
        wide(budget),
        crop_maker(budget) {
    for (const size_t of_view : transforms) views.emplace_back(of_view, budget, displacements);
  }

  // Returns the sink that the decoder writes to.
  RowSink& sink() {
    if (views.size() == 1) return views[0].resampler;
    return all_views;
  }

  ImageDecoder decoder;
  GrowingBuffer crop_index;  // see PlanRun::crop_index
  std::vector<ViewContext> views;
  ViewsSink all_views;    // for more than one
  NearestRows mask_rows;  // for a mask
  GrayRows gray_rows;     // of decoded images
  WideDecoder wide;       // of images of 16 bits, or of other channels
  Reduction reduction = 1;
  std::optional<uint32_t> image;      // the tag of the image that was begun
  uint32_t piece = 0;                 // likewise
  ImageSize viewed;                   // its size, once its header was read
  std::optional<Status> finished;     // its rows, if no pixels were decoded
  uint64_t scaled = 0, scalable = 0;  // as DecodePaths
  CropMaker crop_maker;               // for a device that decodes
  uint64_t on_device = 0;             // as DecodePaths
  uint64_t no_end_marker = 0;         // likewise, of those
  std::array<uint64_t, kOnWorkerReasons> on_worker{};
};

class Workspace {
 public:
  Workspace(const DecodeLimits& limits, std::vector<size_t> of_views, MemoryBudget& budget)
      : limits(limits),
        transforms(std::move(of_views)),
        memory(MemoryBudget::kNoLimit, budget),
        displacements(memory),
        contexts{ImageContext(limits, transforms, memory, displacements),
                 ImageContext(limits, transforms, memory, displacements)} {}

  const DecodeLimits limits;
  const std::vector<size_t> transforms;  // how many each view has
  MemoryBudget memory;
  Displacements displacements;
  std::array<ImageContext, 2> contexts;
  DecodePaths paths;  // of freed contexts
};

}  // namespace stoker
