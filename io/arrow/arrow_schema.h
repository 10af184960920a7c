// ArrowSchema: the columns of an Arrow IPC file, and where their buffers lie in a record batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/result/result.h"
#include "io/arrow/flat_buffer.h"

namespace stoker {

// The types of the format's Schema.fbs, by their numbers there.
enum class ArrowType : uint8_t {
  kNone,
  kNull,
  kInt,
  kFloatingPoint,
  kBinary,
  kUtf8,
  kBool,
  kDecimal,
  kDate,
  kTime,
  kTimestamp,
  kInterval,
  kList,
  kStruct,
  kUnion,
  kFixedSizeBinary,
  kFixedSizeList,
  kMap,
  kDuration,
  kLargeBinary,
  kLargeUtf8,
  kLargeList,
  kRunEndEncoded,
  kBinaryView,
  kUtf8View,
  kListView,
  kLargeListView,
};

struct ArrowField {
  std::string name;
  ArrowType type = ArrowType::kNone;
  int32_t width = 0;       // bits of integers and floats; elements of a fixed-size list
  bool is_signed = false;  // of integers
  bool is_dense = false;   // of unions
  bool is_dictionary = false;
  std::vector<ArrowField> children{};
};

struct ArrowSchema {
  std::vector<ArrowField> fields;
  std::string huggingface;  // the metadata that Hugging Face's datasets writes, JSON; may be empty
};

// The position of a field's buffers in a record batch, or how many it has: fields follow each
// other, each followed by its children.
struct ArrowPosition {
  size_t nodes = 0;
  size_t buffers = 0;
  size_t views = 0;  // fields with further buffers, whose number each batch says

  friend bool operator==(const ArrowPosition&, const ArrowPosition&) = default;
};

// Errors without file and offset: DataLoss (damaged), Unimplemented (big-endian; a type that the
// format did not have when this was written), InvalidArgument (more than 65,536 fields, nested
// deeper than 64).
Result<ArrowSchema> ParseArrowSchema(FlatBuffer& buffer, const FlatTable& schema);

// Moves `position` after a field and its children. `has_union_validity`: whether unions have one
// more buffer, as before version 5 of the format.
void PassField(const ArrowField& field, bool has_union_validity, ArrowPosition& position);

// Returns pyarrow's name of the type: "struct<bytes: binary, path: string>", "int64".
std::string DescribeType(const ArrowField& field);

}  // namespace stoker
