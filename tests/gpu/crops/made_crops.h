// Batches of crops for tests of gpu/crops, and the pixels that they must give.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/batch/device_crop.h"
#include "core/batch/image.h"
#include "core/memory/memory_budget.h"
#include "core/result/result.h"
#include "tests/testing/random.h"
#include "transforms/decode/image_decoder.h"
#include "transforms/device/crop_maker.h"
#include "transforms/resize/resampler.h"

namespace stoker::testing {

// What rows contain before they are written.
inline constexpr uint8_t kUnwritten = 0xa5;

// A crop of an image, as augmentations draw it, for an output of this size: any box, sometimes
// partly outside the image, any orientation, bilinear or nearest.
Resampling RandomCrop(Random& random, ImageSize image, ImageSize output);

// The output's pixels by the CPU's decoders. `file`: any image, followed by kBufferPadding bytes.
class CpuPixels {
 public:
  Result<std::vector<uint8_t>> Of(std::span<const uint8_t> file, const Resampling& task);
  // How the files were decoded.
  DecodePaths paths() const { return decoder_.paths(); }

 private:
  MemoryBudget budget_{MemoryBudget::kNoLimit};
  ImageDecoder decoder_;
  Resampler resampler_{budget_};
};

// The crops of one batch, in memory of exactly the size that they need.
class MadeCrops {
 public:
  explicit MadeCrops(ImageSize output) : row_bytes_(3 * size_t(output.width) * output.height) {}

  // Adds a row. Packed JPEGs, and plain ones with their crop index, followed by kBufferPadding
  // bytes.
  Status Add(std::span<const uint8_t> file, const Resampling& task,
             std::span<const uint8_t> crop_index = {});
  void AddNone();

  // The crop that was added last.
  uint8_t* last() { return bytes_.get() + last_at_; }

  // The sizes of the batch's parts.
  size_t bytes() const { return used_; }
  size_t sample_bytes() const { return samples_ * decode::kGroupSamples; }
  size_t row_bytes() const { return row_bytes_; }

  // Runs and intervals of a crop.
  uint32_t most_runs() const { return most_runs_; }
  uint32_t most_intervals() const { return most_intervals_; }

  // With fresh samples and rows, which the next call frees.
  decode::CropBatch Batch();
  std::span<const uint8_t> row(size_t row) const {
    return {rows_.get() + row * row_bytes_, row_bytes_};
  }
  size_t rows() const { return crop_at_.size(); }

 private:
  struct AlignedBytes {
    void operator()(uint8_t* bytes) const;
  };
  using Bytes = std::unique_ptr<uint8_t[], AlignedBytes>;
  static Bytes Take(size_t bytes);

  const size_t row_bytes_;
  MemoryBudget budget_{MemoryBudget::kNoLimit};
  ImageDecoder decoder_;
  CropMaker maker_{budget_};
  size_t used_ = 0, last_at_ = 0;
  uint64_t samples_ = 0;
  uint32_t most_runs_ = 0, most_intervals_ = 0, most_tiles_ = 0;
  std::vector<uint64_t> crop_at_;
  Bytes bytes_, scratch_, rows_;
};

}  // namespace stoker::testing
