// Element types of the columns of a batch, and the memory layout of its images.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace stoker {

enum class DType : uint8_t {
  kBool = 1,  // one byte, 0 or 1
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kU64,
  kI64,
  kF16,   // IEEE 754 binary16
  kBF16,  // the upper half of a binary32
  kF32,
  kF64,
  kString,  // a std::string_view of UTF-8 text, whose bytes the source owns
  kBytes,   // a std::string_view of any bytes
};

// Whether elements are std::string_views.
constexpr bool IsString(DType dtype) { return dtype == DType::kString || dtype == DType::kBytes; }

// Bytes of one element.
constexpr size_t SizeOf(DType dtype) {
  switch (dtype) {
    case DType::kBool:
    case DType::kU8:
    case DType::kI8:
      return 1;
    case DType::kU16:
    case DType::kI16:
    case DType::kF16:
    case DType::kBF16:
      return 2;
    case DType::kU32:
    case DType::kI32:
    case DType::kF32:
      return 4;
    case DType::kU64:
    case DType::kI64:
    case DType::kF64:
      return 8;
    case DType::kString:
    case DType::kBytes:
      return sizeof(std::string_view);
  }
  return 0;
}

// Bytes of an array with this shape, dense.
constexpr size_t BytesOf(DType dtype, std::span<const int64_t> shape) {
  size_t bytes = SizeOf(dtype);
  for (const int64_t d : shape) bytes *= static_cast<size_t>(d);
  return bytes;
}

// NumPy's names: "bool", "uint8", "float32"; "bfloat16", as ml_dtypes calls it. NumPy has no names
// for "string" and "bytes".
constexpr const char* NameOf(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return "bool";
    case DType::kU8:
      return "uint8";
    case DType::kI8:
      return "int8";
    case DType::kU16:
      return "uint16";
    case DType::kI16:
      return "int16";
    case DType::kU32:
      return "uint32";
    case DType::kI32:
      return "int32";
    case DType::kU64:
      return "uint64";
    case DType::kI64:
      return "int64";
    case DType::kF16:
      return "float16";
    case DType::kBF16:
      return "bfloat16";
    case DType::kF32:
      return "float32";
    case DType::kF64:
      return "float64";
    case DType::kString:
      return "string";
    case DType::kBytes:
      return "bytes";
  }
  return "?";
}

enum class Layout : uint8_t {
  kNhwc,  // (rows, height, width, 3): the channels of a pixel are neighbours
  kNchw,  // (rows, 3, height, width): one plane for each channel
};

constexpr const char* NameOf(Layout layout) { return layout == Layout::kNhwc ? "NHWC" : "NCHW"; }

}  // namespace stoker
