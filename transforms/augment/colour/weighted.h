// Sums of weighted images, for Mix.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stoker {

// Sums that vectors read and write after the last one; of bytes, kTileOverread.
inline constexpr size_t kSumsOverread = 16;

// Adds weight × value to each sum, with two roundings. `sums` is aligned like a GrowingBuffer's.
void AddWeighted(float weight, const uint8_t* values, size_t count, float* sums);
void AddWeightedPlain(float weight, const uint8_t* values, size_t count, float* sums);

// Sets values to sums, in 0…255.99, without their fractions.
void CutSums(const float* sums, size_t count, uint8_t* values);
void CutSumsPlain(const float* sums, size_t count, uint8_t* values);

}  // namespace stoker
