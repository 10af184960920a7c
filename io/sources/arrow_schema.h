// ArrowSchema: the columns of an Arrow IPC file, and where a record batch has their buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/result.h"
#include "io/sources/flat_buffer.h"

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
  int32_t width = 0;       // of integers and floats in bits; the elements of a fixed-size list
  bool is_signed = false;  // of integers
  bool is_dense = false;   // of unions
  bool is_dictionary = false;
  std::vector<ArrowField> children{};
};

struct ArrowSchema {
  std::vector<ArrowField> fields;
  std::string huggingface;  // the metadata that Hugging Face's datasets writes, JSON; empty: none
};

// Where the buffers of a field begin in a record batch, or how many it has: all fields are one
// behind the other, each followed by its children.
struct ArrowPlace {
  size_t nodes = 0;
  size_t buffers = 0;
  size_t views = 0;  // fields with further buffers, as many as each batch says

  friend bool operator==(const ArrowPlace&, const ArrowPlace&) = default;
};

// Errors without file and offset: DataLoss (it is damaged), Unimplemented (big-endian; a type that
// the format did not have when this was written), InvalidArgument (more than 65,536 fields, nested
// deeper than 64).
Result<ArrowSchema> ParseArrowSchema(FlatBuffer& buffer, const FlatTable& schema);

// Moves `place` behind a field and its children. `has_union_validity`: whether unions have a buffer
// more, as before version 5 of the format.
void PassField(const ArrowField& field, bool has_union_validity, ArrowPlace& place);

// "struct<bytes: binary, path: string>", "int64": pyarrow's names.
std::string DescribeType(const ArrowField& field);

}  // namespace stoker
