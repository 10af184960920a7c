// The masks that sources of annotations draw from the shapes of objects.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/batch/dtype.h"
#include "core/batch/object_shapes.h"
#include "core/result/result.h"
#include "io/memory/arrays.h"

namespace stoker {

struct DrawnMasks {
  enum class Kind : uint8_t {
    kNone,       // shapes are not kept
    kInstances,  // a field "instances"
    kSemantic,   // a field "mask"
  };
  Kind kind = Kind::kNone;
  DType dtype = DType::kU8;  // or kU16
  // The rest is kSemantic's. Background: Field::fill, which is 0 for kInstances.
  uint16_t background = kDefaultBackground;
  std::optional<uint16_t> crowd{};  // Field::crowd

  // The value that losses ignore by convention. Classes often begin with 0.
  static constexpr uint16_t kDefaultBackground = 255;
};

// Returns the largest value of masks of kU8 or kU16.
inline uint16_t MostOfMask(DType dtype) { return dtype == DType::kU8 ? UINT8_MAX : UINT16_MAX; }

// Parse an option of this name: "uint8" or "uint16"; a number that masks of `dtype` hold.
// InvalidArgument names the option.
Result<DType> ParseMaskType(const char* name, std::string_view text);
Result<uint16_t> ParseMaskValue(const char* name, std::string_view text, DType dtype);

// Reads the options from texts: "off", "instances" or "semantic"; "uint8" or "uint16"; a number; a
// number or "off". InvalidArgument says which one is wrong, or is not the default although there
// are no masks, or none of this kind, that it would be for.
Result<DrawnMasks> ParseMasks(const std::string& masks, const std::string& dtype,
                              const std::string& background, const std::string& crowd);

// The objects of a source, in one order.
struct DrawnObjects {
  std::span<const int64_t> labels;
  std::span<const uint8_t> crowds;   // 1: drawn with DrawnMasks::crowd, if it has one; may be empty
  std::span<const uint32_t> shapes;  // words
};

// Refuses a semantic mask whose type does not hold a class that is drawn, or in which such a class
// has the value of the background, or of crowds that are drawn. Crowds may have the value of the
// background. An object without a shape is not drawn.
Status CheckClasses(const DrawnMasks& masks, const DrawnObjects& objects);

// Returns the column of the masks. `words`: the shapes of all samples; `offsets`: in words, of each
// sample, and at the end. Precondition: there are masks.
ArrayColumn ColumnOf(const DrawnMasks& masks, std::span<const uint32_t> words,
                     const std::vector<int64_t>& offsets);

}  // namespace stoker
