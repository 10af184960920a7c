// MovedObjects: the boxes and keypoints of one sample, moved by one transform after the other.
//
// Each function does to them what a transform does to the image, in double precision, as the
// function of torchvision's transforms.v2 does. Coordinates are continuous: pixel i covers
// [i, i + 1]. A NaN of a box stays one, and an affine map makes all of that box NaN.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/batch/box_format.h"
#include "core/batch/image.h"
#include "core/memory/buffer.h"
#include "core/memory/memory_budget.h"
#include "core/result/result.h"
#include "transforms/plan/geometry_map.h"
#include "transforms/plan/objects.h"
#include "transforms/spec/transform.h"

namespace stoker {

struct Displacement;

// In pixels. The sides may be in either order.
struct Box {
  double left = 0;
  double top = 0;
  double right = 0;
  double bottom = 0;
  friend bool operator==(const Box&, const Box&) = default;
};

// InvalidArgument unless fields have the bytes of their kinds, pairs of points that a mirror
// exchanges are such pairs, and at most one field has boxes.
Status CheckObjectFields(std::span<const ObjectField> fields);

// Used by one thread at a time. Its memory, of a budget, is reused from sample to sample.
class MovedObjects {
 public:
  enum class Load : uint8_t { kAll, kBoxes };
  static constexpr uint32_t kPasted = uint32_t{1} << 31;  // of an index
  static bool IsPasted(uint32_t index) { return (index & kPasted) != 0; }
  static uint32_t IndexOf(uint32_t index) { return index & ~kPasted; }

  explicit MovedObjects(MemoryBudget& budget) : memory_(budget) {}

  // Returns the most bytes of memory for `count` objects.
  static uint64_t BytesFor(std::span<const ObjectField> fields, uint64_t count);

  // Reads the objects of an image. Normalized boxes are clamped to it, because their texts are
  // often rounded; other boxes and keypoints may lie outside. ResourceExhausted if the budget has
  // no room. The fields, which have passed CheckObjectFields, must stay valid until the last call
  // of another function. There is room for `copies` of each.
  Status Read(std::span<const ObjectField> fields, const ObjectRows& rows, ImageSize image,
              Load load, uint32_t copies = 1);

  // Takes `part` of the image, which may extend outside of it, as padding does. Clamps.
  void Crop(const Rect& part);
  void Resize(ImageSize to);
  // Resizes part `from` of an image of `whole` pixels to `to`, a part of it after it was resized.
  // Clamps.
  void ResizePart(const Rect& from, ImageSize whole, const Rect& to, ImageSize resized);
  // A mirror along one axis also exchanges the keypoints of each pair.
  void Mirror(bool columns, bool rows);
  // A box becomes the smallest one that contains its four moved corners. Clamps.
  void Map(const GeometryMap& map);
  // Moves by noise as torchvision's elastic does: to p − the displacement of pixel p, which is that
  // of a keypoint; of a corner of a box it is the one that begins there or after it. Clamps.
  void Displace(const Displacement& by);
  // Clamps boxes to the image, and hides keypoints outside of it.
  void Clamp();

  // Drops objects, and snaps boxes to the image, as SanitizeBoundingBoxes says.
  void Sanitize(double min_size, double min_area);
  // Crops, turns what it is given a map for, and drops objects whose boxes are then too small, as
  // Mosaic says. `of_shapes`: the boxes that the first objects get, in the row; without one, an
  // object's own box is moved.
  void CropToMosaic(const Rect& part, const std::optional<GeometryMap>& turn,
                    std::span<const std::optional<Box>> of_shapes);
  // Drops objects whose box has its center outside of `part`, or on its border.
  void KeepCentersIn(const Rect& part);
  // Keeps the first `count` objects. The others follow them in all(), until others are pasted.
  void SetAside(size_t count);
  // Returns the places in all() of the objects that CopyPaste chooses, ascending; valid until the
  // next call: of those that are kept, as they are mirrored, or of those that were set aside; none
  // if no object is kept. Takes time in proportion to the square of their number.
  std::vector<uint32_t>& Choose(double p, CopyPaste::Mode mode);
  // Adds copies of these objects, mirrored left and right, after the others.
  void PasteMirrored(std::span<const uint32_t> chosen);
  // Adds these of the objects that were set aside after the others.
  void PasteOthers(std::span<const uint32_t> chosen);
  // Says how boxes are written: as shares of a size, or in pixels. Until then, in the format in
  // which they were read, in pixels.
  void WriteAs(BoxFormat format, std::optional<ImageSize> shares_of);

  // Writes the objects, with what else they have, into `rows`, after as many others, and how many
  // there are with those. A hidden keypoint is (0, 0, 0). Precondition: all of `rows` was read, and
  // has room.
  void Write(const ObjectRows& rows, size_t after = 0) const;

  ImageSize size() const { return size_; }  // of the image that they are in
  std::span<const Box> boxes() const { return {boxes_, count_}; }
  // The indices of those that are kept, among those that were read; those of pasted ones, which are
  // the last ones, with kPasted.
  std::span<const uint32_t> kept() const { return {indices_, count_}; }
  std::span<const uint32_t> all() const { return {indices_, count_ + aside_}; }

 private:
  struct Point {
    double x, y;
    float visibility;
  };
  static size_t PointsOf(const ObjectField& field);
  template <typename Visit>
  void ForEachPoint(const Visit& visit) const;
  template <typename X, typename Y>
  void MoveEach(const X& x, const Y& y) const;
  template <typename Corner, typename Place>
  void MapEach(const Corner& corner, const Place& place);
  void ExchangePairs() const;
  template <typename Test>
  void KeepIf(const Test& test);
  void Move(size_t from, size_t to);
  void ReadBoxes(const ObjectField& field, const uint8_t* from);
  void ReadPoints(const ObjectField& field, const uint8_t* from, Point* to) const;
  void WriteBoxes(uint8_t* to) const;
  void WritePoints(const ObjectField& field, const Point* from, uint8_t* to) const;
  void WriteValues(const ObjectField& field, const uint8_t* from, uint8_t* to) const;

  GrowingBuffer memory_;
  std::span<const ObjectField> fields_;
  ImageSize size_;
  BoxFormat format_ = BoxFormat::kXyxy;  // as boxes are written
  std::optional<ImageSize> shares_of_;   // likewise
  size_t read_ = 0;                      // objects
  size_t room_ = 0;                      // likewise, at least as many
  size_t count_ = 0;  // of them, those that are kept: the first ones of each array
  size_t aside_ = 0;  // those that were set aside: the next ones
  Box* boxes_ = nullptr;
  Point* points_ = nullptr;      // of one field after the other, each with room for room_ objects
  uint32_t* indices_ = nullptr;  // of the objects, in what was read
  std::vector<std::pair<double, uint32_t>> possible_;  // of Choose
  std::vector<uint32_t> chosen_;                       // likewise
};

}  // namespace stoker
