// Patches: the last step of an image processor, from a canvas of bytes to rows of numbers.
#pragma once

#include <array>
#include <cstdint>

#include "core/batch/dtype.h"
#include "core/batch/image.h"
#include "transforms/processor/recipe.h"

namespace stoker {

// The float32 that each value of each channel becomes, with the operations and the roundings of the
// recipe's processor, and then rounded to the row's type.
struct PatchValues {
  // `dtype`: kU8, which changes no value, kF16, kBF16 or kF32.
  PatchValues(const ProcessorRecipe& recipe, DType dtype);

  DType dtype;
  std::array<std::array<float, 256>, 3> singles{};
  std::array<std::array<uint16_t, 256>, 3> halves{};

  // Whether all of `singles` are (value − mean) / deviation, which vectors then compute.
  bool computed = true;
  // By channel: for each value of a piece of a run (patches.cc), and for a piece that begins with
  // the second or third of interleaved channels.
  static constexpr size_t kPiece = 8;
  std::array<std::array<float, kPiece + 2>, 3> mean{}, deviation{};
};

// Writes the rows of a canvas in the recipe's order, each once. `canvas`: `size` pixels of three
// bytes, interleaved if the recipe's patches are, otherwise in planes, without gaps. `rows`: any
// alignment. Precondition: patch × merge divides the size.
void WritePatches(const uint8_t* canvas, ImageSize size, ImageSize patch,
                  const ProcessorRecipe& recipe, const PatchValues& values, uint8_t* rows);

}  // namespace stoker
