// CropMaker: the host's part of decoding on a device. It makes the DeviceCrop of a JPEG, packed or
// with a crop index.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/batch/device_crop.h"
#include "core/batch/image.h"
#include "core/memory/buffer.h"
#include "core/memory/memory_budget.h"
#include "core/result/result.h"
#include "transforms/device/crop_bits.h"
#include "transforms/jpeg/fast/index/crop_geometry.h"
#include "transforms/jpeg/indexed_jpeg.h"
#include "transforms/packed/packed_file.h"
#include "transforms/resize/axis_filter.h"
#include "transforms/resize/resampler.h"

namespace stoker {

// Reused from photograph to photograph. Not thread-safe.
class CropMaker {
 public:
  // `budget` is charged for all memory, and must outlive this.
  explicit CropMaker(MemoryBudget& budget) : rows_(budget), columns_(budget), lists_(budget) {}

  // Plans the crop that `task` resamples, to a row of pixels of u8, NHWC, and verifies the
  // checksums of the bytes that it needs. The bytes of `file` must stay until Write. `room`: the
  // most bytes that the crop may have. Lists that would be larger are refused before they take
  // memory.
  //
  // Any error means that the worker must decode this photograph: Unimplemented for resampling that
  // devices do not support, or that needs more memory than a block has; DataLoss if it is damaged,
  // or has changed since it was indexed (the worker finds the error to report, if there is one);
  // ResourceExhausted if the crop, or its planning in the budget, has no room.
  Status Plan(const packed::PackedFile& file, const Resampling& task,
              uint64_t room = decode::kMaxCropBytes);
  Status Plan(const IndexedJpeg& file, const Resampling& task,
              uint64_t room = decode::kMaxCropBytes);

  // The sizes of the planned crop.
  size_t bytes() const { return bytes_; }       // a multiple of kCropAlignment
  uint64_t samples() const { return groups_; }  // scratch, × kGroupSamples
  uint32_t runs() const { return crop_.runs; }
  uint32_t intervals() const { return crop_.intervals; }
  uint32_t tiles() const { return crop_.tiles; }

  // Writes it to `to`, aligned to kCropAlignment. Its samples begin at `samples` × kGroupSamples of
  // the batch's.
  void Write(uint64_t samples, uint8_t* to) const;

 private:
  Status PlanBox(const jpeg::FrameHeader& frame, const Resampling& task);
  Status PlanAxes(const Resampling& task);
  void PlanOutput(const Resampling& task);
  void PlanFactors(const jpeg::FrameHeader& frame);
  Status PlanTiles();
  void ListTiles();
  jpeg::CropGeometry GeometryOf(const jpeg::FrameHeader& frame) const;
  void PlanPlanes(const jpeg::CropGeometry& geometry, int left);
  Status PlanLists(uint32_t pieces, uint64_t room);
  Status SetBytes(size_t bytes, uint64_t room);
  template <typename T>
  T* ListAt(size_t at) const {
    return reinterpret_cast<T*>(lists_.data() + at);
  }

  AxisFilter rows_, columns_;
  decode::DeviceCrop crop_;
  ImageSize tile_;
  // The lists of runs or intervals, and of tiles, where they are in the crop; after them, the
  // pieces of bits_.
  GrowingBuffer lists_;
  std::array<decode::CropCodes, decode::kMostCodes> codes_;  // of a plain JPEG
  CropBits bits_;
  size_t bytes_ = 0;
  uint64_t groups_ = 0;
};

}  // namespace stoker
