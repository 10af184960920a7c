// The pixel part of PadTo::multiple: makes the images of a batch, each stored at its own size, rows
// of one size.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/batch/image.h"

namespace stoker {

class Plan;

// How the pixels of a batch's column lie in memory.
struct BatchRows {
  uint8_t* data = nullptr;    // of the first image, in C order without gaps
  size_t reserved_bytes = 0;  // to the next image; enough for a row of the final size
  size_t planes = 1;
  size_t pixel_bytes = 0;             // of a plane
  std::array<uint8_t, 12> padding{};  // a pixel of each plane, one after another
};

// Returns the size of the rows for images of these sizes, (height, width) each: the largest height
// and width, rounded up. Precondition: there is at least one image.
ImageSize LargestOf(std::span<const int32_t> sizes, uint32_t multiple);

// Makes what Apply has written for a batch of images rows of `whole` pixels, one after another
// without gaps. `plan` is that of a piece and pads batches; `data` is its column in a slot, with
// row_bytes() for each image.
void FinishBatch(const Plan& plan, void* data, std::span<const int32_t> sizes, ImageSize whole);

// Makes the images rows of `whole` pixels, one after another without gaps: the image at the top
// left, and padding in the rest. Precondition: `whole` is at least as large as each of `sizes`.
void PadBatch(const BatchRows& rows, std::span<const int32_t> sizes, ImageSize whole);

// The reference: same bytes.
void PadBatchPlain(const BatchRows& rows, std::span<const int32_t> sizes, ImageSize whole);

}  // namespace stoker
