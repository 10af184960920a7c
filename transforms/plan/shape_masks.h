// ShapeMasks: draws masks from the shapes of a sample's objects, in the pixels of its row.
//
// Polygons are moved by MapToRow, in double precision, and then filled (PolygonFill): where nothing
// moves, the pixels are those of COCO's API. Runs move as the pixels of a mask do. Padding, and
// what a crop has cut off, show no object.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/batch/image.h"
#include "core/batch/object_shapes.h"
#include "core/memory/buffer.h"
#include "core/memory/memory_budget.h"
#include "core/result/result.h"
#include "transforms/augment/augmenter.h"
#include "transforms/plan/drawn.h"
#include "transforms/plan/geometry_map.h"
#include "transforms/plan/moved_objects.h"
#include "transforms/plan/objects.h"
#include "transforms/resize/nearest_rows.h"
#include "transforms/shapes/polygon_fill.h"

namespace stoker {

// The place of a Mosaic's image, in pixels of the row; rectangles may lie outside it.
struct MosaicPlace {
  Rect whole;   // all of the image, resized
  Rect canvas;  // clamps it before it is turned; copies are mirrored about its middle
  std::optional<GeometryMap> turn;
  ImageSize row;
};

// Used by one thread at a time. Its memory, of a budget, is reused from sample to sample.
class ShapeMasks {
 public:
  // An image, and its objects.
  struct Image {
    const DrawnSample* drawn = nullptr;  // the window shows all of Target::size before the steps
    ImageSize size;                      // as viewed
    std::span<const ShapeMask> masks{};
    uint32_t first = 0, count = 0;  // indices of its objects
    // The place of each object among all whose shapes the masks have; empty if it has all of them.
    std::span<const uint32_t> kept{};

    uint32_t PlaceOf(uint32_t object) const;  // in the shapes
  };
  // The pixels that are drawn.
  struct Target {
    ImageSize size;
    ImageSize row;                      // at least as large
    const Placement* placed = nullptr;  // in the row
    size_t after = 0;                   // objects of the row before these
  };

  explicit ShapeMasks(MemoryBudget& budget)
      : memory_(budget), inside_(budget), nearest_(budget), changes_(budget) {}

  // Returns the most bytes of memory for rows of this size, without those that runs need.
  static uint64_t BytesFor(ImageSize row, uint32_t objects);

  // Sets the first ones of `boxes` to those in the row of the image's objects, as far as `objects`
  // begins with them: copies, or none. Returns their number. The box is infinite if no part is in
  // the row, and nullopt unless all of an object's shapes are polygons, and one has a corner.
  size_t FindBoxes(const Image& image, std::span<const uint32_t> objects, const MosaicPlace& at,
                   std::span<std::optional<Box>> boxes);

  // Draws all masks; the images have the same number of them, and one row. `kept`: as that of
  // MovedObjects, of the images one after another; copies are on top. The tile of `augmenter` is
  // lost. InvalidArgument: more objects than the pixels of a mask can tell apart, runs for an image
  // of another size, or more pixels to draw, summed over the objects of an image or their copies,
  // than 2^26 plus 1,024 for each pixel of the target or, if it has more, of the image's window,
  // which bounds the time. DataLoss: shapes of fewer objects than there are.
  // ResourceExhausted: the budget has no room.
  Status Draw(std::span<const Image> images, std::span<const uint32_t> kept, const Target& target,
              Augmenter& augmenter);

  // Returns a byte for each pixel of the target: 1 where one of the chosen objects is, otherwise 0;
  // valid until the next call of this. `chosen`: ascending places in `kept`; those of objects that
  // have no pixel are removed. Errors are those of Draw, which draws the first mask.
  Result<const uint8_t*> DrawInside(std::span<const Image> images, std::span<const uint32_t> kept,
                                    const Target& target, Augmenter& augmenter,
                                    std::vector<uint32_t>& chosen);

  // Returns the index of the image whose shapes are the cause of the last error, if that is known,
  // and forgets it.
  std::optional<size_t> TakeFailed() { return std::exchange(failed_, std::nullopt); }

 private:
  struct Columns {
    int begin = 0, end = 0;
  };

  Status Start(size_t objects, const Target& target);
  Status DrawImages(std::span<const Image> images, size_t mask, std::span<const uint32_t> kept,
                    size_t below, size_t after, Augmenter& augmenter);
  void FindImage(const Image& image);
  void FindColumns();
  Status DrawObjects(const Image& image, const ShapeMask& mask, std::span<const uint32_t> kept,
                     size_t number, size_t below, Augmenter& augmenter);
  Result<Rect> DrawPolygon(const ShapePart& part, const GeometryMap& map, double width,
                           double height);
  Result<Rect> DrawRuns(const ShapePart& part, const Image& image, Augmenter& augmenter);
  Status FindPlaces(const Image& image, Augmenter& augmenter);
  Result<Rect> FillRuns(const ShapePart& part, const BytePlane& to, uint8_t* scratch);
  Status Touch(uint64_t pixels);
  void Paint(size_t number, size_t below, const Rect& bounds);
  void Write(const ShapeMask& mask, const Target& target);

  GrowingBuffer memory_;  // the arrays that follow, for an image of size_
  ImageSize size_;
  uint32_t* areas_ = nullptr;   // by number, in pixels
  Columns* columns_ = nullptr;  // of each row of pixels, those of the image
  uint16_t* values_ = nullptr;  // by number
  uint16_t* owners_ = nullptr;  // of each pixel, the object's number; 0 is the background
  BytePlane object_;            // the pixels of one object; 0 between objects
  uint8_t* scratch_ = nullptr;  // of PolygonFill

  GrowingBuffer inside_;           // of DrawInside
  std::vector<uint32_t> indices_;  // likewise
  DrawnSample copies_;             // a sample as its pasted objects move

  uint64_t touched_ = 0, most_touched_ = 0;  // pixels of an image: an estimate of the time
  std::optional<size_t> failed_;
  // How runs move, if the sample has any.
  NearestRows nearest_;
  DrawnSample motion_;
  bool has_places_ = false;
  ImageSize image_;
  Rect region_;  // of the image; empty if no pixel of it is in the row
  NearestRows::Places places_;
  GrowingBuffer changes_;            // of a tile before its steps: scratch, all 0
  std::vector<MapPoint> corners_;    // of the image in its part of the row
  std::vector<HalfPlane> horizons_;  // of the image: shapes end there
  std::vector<MapPoint> polygon_;
};

}  // namespace stoker
