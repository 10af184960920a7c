// Planes: the samples of one row of MCUs, and their conversion to rows of the region.
#pragma once

#include <array>
#include <cstdint>

#include "transforms/decode/row_sink.h"
#include "transforms/jpeg/fast/index/crop_geometry.h"

namespace stoker::jpeg {

// If chroma has half as many rows, a row of pixels needs the chroma row above or below its own: the
// last row of an MCU row waits for the next MCU row. So each plane keeps one row of the previous
// MCU row, at index -1.
//
// Reused from image to image. Not thread-safe.
class Planes {
 public:
  // The bytes for all planes of one image, the minimum size of the memory given to Start.
  static size_t BytesFor(const CropGeometry& geometry) { return LayOut(geometry).bytes; }

  // Prepares for one image. `rows`: the layout of those to deliver.
  void Start(const CropGeometry& geometry, PixelLayout rows, uint8_t* memory);

  // Row `row` (0…) of the current MCU row in the plane of a component; column 0 is that of MCU
  // geometry.left. Whole groups of blocks may be written.
  uint8_t* Row(int component, int row) const {
    const Plane& p = plane_[static_cast<size_t>(component)];
    return p.first + row * p.stride;
  }
  ptrdiff_t stride(int component) const { return plane_[static_cast<size_t>(component)].stride; }

  // Must be called when MCU row `mcu_row` is complete in all planes: delivers the rows of the
  // region that are now available.
  void Deliver(int mcu_row, RowSink& sink);

 private:
  struct Plane {
    uint8_t* first = nullptr;  // row 0, column 0
    ptrdiff_t stride = 0;
  };

  // Offsets in bytes from the start of the memory.
  struct MemoryLayout {
    std::array<size_t, 3> stride{}, first{}, upsampled{};
    size_t bytes = 0;
  };
  static MemoryLayout LayOut(const CropGeometry& geometry);

  void RepeatEdges();
  void KeepLastRow();
  void WriteRow(int mcu_row, int y, const MutableImageView& view, int row);
  const uint8_t* Chroma(int component, int mcu_row, int y);

  const CropGeometry* geometry_ = nullptr;
  PixelLayout layout_ = PixelLayout::kPlanar;
  std::array<Plane, 3> plane_;
  std::array<uint8_t*, 3> upsampled_{};  // one row of each chroma component; [0] is not used
};

}  // namespace stoker::jpeg
