// PolygonFill: sets the pixels inside polygons, by the rule of COCO's API (pycocotools).
//
// The rule: corners are rounded to fifths of a pixel, and each edge is walked in such steps along
// its longer axis. In each column of pixels, an edge that passes its center line changes between
// outside and inside, from the first pixel whose center is not above the step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/batch/image.h"

namespace stoker {

// One byte for each pixel, in rows without gaps. Owns nothing.
struct BytePlane {
  uint8_t* pixels = nullptr;
  ImageSize size;
  uint8_t* row(int y) const { return pixels + ptrdiff_t{y} * size.width; }
};

// Sets the pixels of `plane` that are inside to 1, within `bounds`: columns change between outside
// and inside where `changes`, which has a row more, is 1. Sets the changes to 0.
void FillChanges(const BytePlane& changes, const Rect& bounds, const BytePlane& plane);

// Fills one polygon after another. Takes time in proportion to the corners, the columns that each
// edge passes, and the pixels of the polygon's bounds in the plane.
class PolygonFill {
 public:
  // Bytes of `scratch` for a plane.
  static size_t ScratchBytes(ImageSize size) {
    return static_cast<size_t>(size.width) * (static_cast<size_t>(size.height) + 1);
  }

  // `scratch`: all 0, as after each Close. Both must outlive this.
  PolygonFill(const BytePlane& plane, uint8_t* scratch)
      : plane_(plane), changes_{scratch, plane.size} {}

  // Adds a corner, in pixels of the plane; it may lie anywhere. A polygon that has one which is NaN
  // is not filled.
  void Add(double x, double y);
  // Sets the pixels inside to 1, and leaves the others. Returns the bounds of what it may have set.
  // The next corner is that of another polygon.
  Rect Close();
  // The changes of columns since the constructor, whose number the time of Add is in proportion to.
  uint64_t changes() const { return changed_; }

 private:
  // In fifths of a pixel.
  struct Corner {
    int64_t x = 0, y = 0;
    friend bool operator==(const Corner&, const Corner&) = default;
  };
  void Edge(Corner from, Corner to);
  void FlatEdge(const Corner& from, const Corner& to);
  void SteepEdge(const Corner& from, const Corner& to);
  void Change(int64_t right, int64_t y);
  Rect Fill();

  BytePlane plane_;
  BytePlane changes_;  // where columns change, and a row after them
  Corner first_, last_;
  size_t corners_ = 0;
  uint64_t changed_ = 0;
  bool has_nan_ = false;
  int left_ = 0, right_ = 0, top_ = 0, bottom_ = 0;  // of the changes, if left_ < right_
};

// A corner of a polygon.
struct PlanePoint {
  double x = 0, y = 0;
};

// The reference: lists all steps of the boundary, and fills by runs, as the rule is published. Sets
// the pixels inside the polygon to 1.
void FillPolygonPlain(const std::vector<PlanePoint>& corners, ImageSize size,
                      std::vector<uint8_t>& pixels);

}  // namespace stoker
