#include "io/arrow/arrow_schema.h"

#include <array>
#include <string_view>
#include <utility>

#include "core/result/try.h"
#include "core/result/utf8.h"

namespace stoker {

namespace {

constexpr size_t kMostFields = 1 << 16;
constexpr int kDeepest = 64;

Error SchemaIsDamaged() { return {Code::kDataLoss, "the schema is damaged"}; }

int32_t WidthOf(ArrowType type, const FlatTable& described) {
  switch (type) {
    case ArrowType::kInt:
    case ArrowType::kFixedSizeBinary:
    case ArrowType::kFixedSizeList:
      return described.Number<int32_t>(0);
    case ArrowType::kFloatingPoint:
      return 16 << (described.Number<int16_t>(0) & 3);
    default:
      return 0;
  }
}

class SchemaParser {
 public:
  explicit SchemaParser(FlatBuffer& buffer) : buffer_(buffer) {}

  Result<std::vector<ArrowField>> Fields(const FlatVector& given, int depth) {
    fields_ += given.size();
    if (fields_ > kMostFields || depth > kDeepest) {
      return Error{Code::kInvalidArgument,
                   "the schema has more than 65,536 columns, or is nested deeper than 64"};
    }
    std::vector<ArrowField> fields;
    for (size_t i = 0; i < given.size() && buffer_.sound(); ++i) {
      ASSIGN_OR_RETURN(ArrowField field, Field(given.TableAt(i), depth));
      fields.push_back(std::move(field));
    }
    if (!buffer_.sound()) return SchemaIsDamaged();
    return fields;
  }

 private:
  Result<ArrowField> Field(const FlatTable& given, int depth) {
    const auto number = given.Number<uint8_t>(2);
    const FlatTable type = given.Table(3);
    const std::string_view name = given.Text(0);
    name_bytes_ += name.size();
    if (number == 0 || name_bytes_ > buffer_.size()) return SchemaIsDamaged();
    ArrowField field{.name = std::string(name), .type = static_cast<ArrowType>(number)};
    if (field.type > ArrowType::kLargeListView) {
      return Error{Code::kUnimplemented, "column '" + Printable(name.substr(0, 100)) +
                                             "' is of Arrow's type number " +
                                             std::to_string(number) + ", which is too new"};
    }
    field.width = WidthOf(field.type, type);
    field.is_signed = field.type == ArrowType::kInt && type.Number<uint8_t>(1) != 0;
    field.is_dense = field.type == ArrowType::kUnion && type.Number<int16_t>(0) != 0;
    field.is_dictionary = given.Table(4).present();
    ASSIGN_OR_RETURN(field.children, Fields(given.Vector(5, sizeof(uint32_t)), depth + 1));
    return field;
  }

  FlatBuffer& buffer_;
  size_t fields_ = 0;
  size_t name_bytes_ = 0;  // of all fields: many that share a name may have more than the buffer
};

// Returns the number of buffers of a field without its children: validity, offsets, values.
size_t BuffersOf(const ArrowField& field, bool has_union_validity) {
  if (field.is_dictionary) return 2;
  switch (field.type) {
    case ArrowType::kNone:
    case ArrowType::kNull:
    case ArrowType::kRunEndEncoded:
      return 0;
    case ArrowType::kStruct:
    case ArrowType::kFixedSizeList:
      return 1;
    case ArrowType::kUnion:
      return 1U + (field.is_dense ? 1U : 0U) + (has_union_validity ? 1U : 0U);
    case ArrowType::kBinary:
    case ArrowType::kUtf8:
    case ArrowType::kLargeBinary:
    case ArrowType::kLargeUtf8:
    case ArrowType::kListView:
    case ArrowType::kLargeListView:
      return 3;
    default:
      return 2;
  }
}

}  // namespace

Result<ArrowSchema> ParseArrowSchema(FlatBuffer& buffer, const FlatTable& schema) {
  if (schema.Number<int16_t>(0) != 0) {
    return Error{.code = Code::kUnimplemented,
                 .cause = "the file's numbers are big-endian",
                 .advice = "Write it again on a little-endian machine"};
  }
  ArrowSchema parsed;
  ASSIGN_OR_RETURN(parsed.fields,
                   SchemaParser(buffer).Fields(schema.Vector(1, sizeof(uint32_t)), 0));
  const FlatVector metadata = schema.Vector(2, sizeof(uint32_t));
  for (size_t i = 0; i < metadata.size() && buffer.sound(); ++i) {
    const FlatTable entry = metadata.TableAt(i);
    if (entry.Text(0) != "huggingface") continue;
    parsed.huggingface = entry.Text(1);
    break;  // like pyarrow, which takes the first one
  }
  if (!buffer.sound()) return SchemaIsDamaged();
  return parsed;
}

void PassField(const ArrowField& field, bool has_union_validity, ArrowPosition& position) {
  ++position.nodes;
  position.buffers += BuffersOf(field, has_union_validity);
  if (field.is_dictionary) return;
  if (field.type == ArrowType::kBinaryView || field.type == ArrowType::kUtf8View) ++position.views;
  for (const ArrowField& child : field.children) PassField(child, has_union_validity, position);
}

std::string DescribeType(const ArrowField& field) {
  static constexpr std::array kNames = {"none",
                                        "null",
                                        "int",
                                        "float",
                                        "binary",
                                        "string",
                                        "bool",
                                        "decimal",
                                        "date",
                                        "time",
                                        "timestamp",
                                        "interval",
                                        "list",
                                        "struct",
                                        "union",
                                        "fixed_size",
                                        "fixed_size",
                                        "map",
                                        "duration",
                                        "large_binary",
                                        "large_string",
                                        "large_list",
                                        "run_end_encoded",
                                        "binary_view",
                                        "string_view",
                                        "list_view",
                                        "large_list_view"};
  if (field.is_dictionary) return "dictionary";
  std::string name = kNames[static_cast<size_t>(field.type)];
  if (field.type == ArrowType::kInt) {
    return (field.is_signed ? name : "u" + name) + std::to_string(field.width);
  }
  if (field.type == ArrowType::kFloatingPoint) return name + std::to_string(field.width);
  if (field.type == ArrowType::kFixedSizeBinary) {
    return "binary[" + std::to_string(field.width) + "]";
  }
  if (field.children.empty()) return name;
  constexpr size_t kMost = 4;
  std::string inner;
  for (size_t i = 0; i < field.children.size() && i < kMost; ++i) {
    const ArrowField& child = field.children[i];
    if (i != 0) inner += ", ";
    inner += (field.type == ArrowType::kStruct ? child.name + ": " : "") + DescribeType(child);
  }
  if (field.children.size() > kMost) inner += ", …";
  if (field.type != ArrowType::kFixedSizeList) return name + "<" + inner + ">";
  return "list<" + inner + ">[" + std::to_string(field.width) + "]";
}

}  // namespace stoker
