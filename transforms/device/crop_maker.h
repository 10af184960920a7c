// CropMaker: the host's part of decoding on a device. It makes the DeviceCrop of a packed JPEG.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/device_crop.h"
#include "core/memory_budget.h"
#include "core/result.h"
#include "transforms/jpeg/fast/crop_geometry.h"
#include "transforms/packed/packed_file.h"
#include "transforms/resize/axis_filter.h"
#include "transforms/resize/resampler.h"

namespace stoker {

// Reused from photograph to photograph. Not thread-safe.
class CropMaker {
 public:
  // `budget` is charged for filters, and must outlive this.
  explicit CropMaker(MemoryBudget& budget) : rows_(budget), columns_(budget) {}

  // Plans the crop that `task` resamples, to a row of pixels of u8, NHWC, and verifies the
  // checksums of the rows of MCUs that it needs. The bytes of `file` must stay until Write.
  //
  // Any error means that the worker must decode this photograph, which also finds the error that is
  // to be reported: Unimplemented for what devices do not resample, or only in more memory than a
  // block has; DataLoss; ResourceExhausted.
  Status Plan(const packed::PackedFile& file, const Resampling& task);

  // The sizes of the planned crop.
  size_t bytes() const { return bytes_; }       // a multiple of kCropAlignment
  uint64_t samples() const { return groups_; }  // scratch, × kGroupSamples
  uint32_t runs() const { return crop_.runs; }
  uint32_t tiles() const { return crop_.tiles; }

  // Writes it to `to`, aligned to kCropAlignment. Its samples begin at `samples` × kGroupSamples of
  // the batch's.
  void Write(uint64_t samples, uint8_t* to) const;

 private:
  struct Piece {  // of the file
    const uint8_t* from;
    size_t bytes;
  };

  Status PlanAxes(const Resampling& task);
  void PlanOutput(const Resampling& task);
  void PlanFactors(const jpeg::FrameHeader& frame);
  void PlanPlanes(const jpeg::CropGeometry& geometry);
  Status PlanRuns(const packed::PackedFile& file, const jpeg::CropGeometry& geometry);
  Status PlanRow(std::span<const uint8_t> row, const packed::BlockRows& block_rows,
                 const jpeg::CropGeometry& geometry, int mcu_row);
  Status PlanTiles();
  Status PlanMemory();

  AxisFilter rows_, columns_;
  decode::DeviceCrop crop_;
  std::vector<decode::CropRun> runs_;
  std::vector<decode::CropTile> tiles_;
  std::vector<Piece> pieces_;
  size_t packed_bytes_ = 0, packed_at_ = 0;
  size_t bytes_ = 0;
  uint64_t groups_ = 0;
};

}  // namespace stoker
