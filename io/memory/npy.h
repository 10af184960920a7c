// Parses .npy files: arrays as NumPy's save writes them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/batch/dtype.h"
#include "core/result/result.h"
#include "io/source/field.h"

namespace stoker {

// The header of an .npy file: the type and shape of its array, and where its values begin.
struct NpyHeader {
  static constexpr size_t kMostDimensions = 7;

  DType dtype = DType::kU8;
  std::array<int64_t, kMostDimensions> dimensions{};
  size_t dimension_count = 0;
  size_t data_begin = 0;  // in the file

  std::span<const int64_t> shape() const { return std::span(dimensions).first(dimension_count); }
};

// The longest header that is parsed, as in NumPy; what precedes the data is at most
// kMostNpyHeaderBytes.
inline constexpr size_t kLongestNpyHeader = 10000;
inline constexpr size_t kMostNpyHeaderBytes = 12 + kLongestNpyHeader;

// Parses the header of an .npy file of version 1.0, 2.0 or 3.0; `file` is its beginning.
// Nothing is evaluated: the header must be the dictionary that NumPy writes, with its three keys in
// any order. No dimension is 0.
//
// Errors have an offset in `file`. DataLoss: not an .npy file, a damaged header, an array of more
// bytes than any memory has; with kTruncated, the header is cut off. Unimplemented: another
// version, an array without elements, more than kMostDimensions, Fortran order, the other byte
// order, and element types that a batch does not have: objects, which are pickled code, text,
// structures, complex numbers.
Result<NpyHeader> ParseNpyHeader(std::span<const uint8_t> file);

// Copies the array of an .npy file to `row`. It has the type and shape of `field`, and nothing
// follows it. Errors: those of ParseNpyHeader, and DataLoss for another type, shape or length, and
// for a bool that is neither 0 nor 1. Allocates only for an error.
Status CopyNpy(std::span<const uint8_t> file, const Field& field, std::span<uint8_t> row);

}  // namespace stoker
