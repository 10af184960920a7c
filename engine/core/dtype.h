// Element types of the columns of a batch.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stoker {

enum class DType : uint8_t { kU8, kI64, kF32 };

constexpr size_t SizeOf(DType dtype) {
  switch (dtype) {
    case DType::kU8:
      return 1;
    case DType::kI64:
      return 8;
    case DType::kF32:
      return 4;
  }
  return 0;
}

// NumPy's names: "uint8", "int64", "float32".
constexpr const char* NameOf(DType dtype) {
  switch (dtype) {
    case DType::kU8:
      return "uint8";
    case DType::kI64:
      return "int64";
    case DType::kF32:
      return "float32";
  }
  return "?";
}

}  // namespace stoker
