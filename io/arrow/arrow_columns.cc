#include "io/arrow/arrow_columns.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "core/result/plural.h"
#include "core/result/try.h"
#include "core/result/utf8.h"
#include "io/arrow/huggingface.h"

namespace stoker {

namespace {

// Returns advice on how to write a file whose column has this type.
const char* AdviceFor(const ArrowField& field) {
  if (field.is_dictionary) {
    return "Decode it before the file is written: polars' cast(polars.String), or pyarrow's "
           "ChunkedArray.combine_chunks().dictionary_decode()";
  }
  if (field.type == ArrowType::kBinaryView || field.type == ArrowType::kUtf8View) {
    return "Write it without views: polars' write_ipc(…, "
           "compat_level=polars.CompatLevel.oldest()), or pyarrow's Table.set_column and cast()";
  }
  if (field.type == ArrowType::kList || field.type == ArrowType::kLargeList) {
    return "Cast lists of one length to fixed-size ones (pyarrow.list_(type, length)); pad others "
           "to one length, or write them as text (json.dumps)";
  }
  return "Convert the column before the file is written: pyarrow's Table.set_column and cast()";
}

// Returns a name or a type, which may be any bytes in a file, for messages.
std::string Shown(std::string_view text) { return Printable(text.substr(0, 100)); }

std::string ListColumns(const std::vector<ArrowField>& fields) {
  constexpr size_t kMost = 30;
  std::string text;
  for (size_t i = 0; i < std::min(fields.size(), kMost); ++i) {
    text +=
        (i == 0 ? "" : ", ") + Shown(fields[i].name) + " (" + Shown(DescribeType(fields[i])) + ")";
  }
  return fields.empty() ? "none" : fields.size() > kMost ? text + ", …" : text;
}

// Returns advice if the file lacks the column that was named for the batch's column `name`.
std::string AdviceWithout(const std::string& name) {
  if (name == "image") return "Name the column of encoded images: image=\"…\"";
  if (name == "label") return "Name the column of labels: label=\"…\"; or None for no labels";
  return "Choose from the columns of the file (columns=[…])";
}

Error BadColumn(const ArrowColumn& column, const std::string& cause) {
  return {.code = Code::kInvalidArgument,
          .cause = "column '" + Printable(column.in_file) + "' is " +
                   Shown(DescribeType(column.is_list() ? column.list : column.field)) + cause,
          .advice = AdviceFor(column.field)};
}

bool IsBinary(ArrowType type) {
  return type == ArrowType::kBinary || type == ArrowType::kLargeBinary;
}

bool IsText(ArrowType type) { return type == ArrowType::kUtf8 || type == ArrowType::kLargeUtf8; }

// Returns the type of a number; nullopt for other types.
std::optional<DType> NumberType(const ArrowField& field) {
  constexpr std::array kUnsigned = {DType::kU8, DType::kU16, DType::kU32, DType::kU64};
  constexpr std::array kSigned = {DType::kI8, DType::kI16, DType::kI32, DType::kI64};
  constexpr std::array kFloats = {DType::kF16, DType::kF32, DType::kF64};
  if (field.is_dictionary) return std::nullopt;
  if (field.type == ArrowType::kBool) return DType::kBool;
  for (size_t i = 0; i < kSigned.size(); ++i) {
    if (field.width != 8 << i) continue;
    if (field.type == ArrowType::kInt) return field.is_signed ? kSigned[i] : kUnsigned[i];
    if (field.type == ArrowType::kFloatingPoint && i > 0) return kFloats[i - 1];
  }
  return std::nullopt;
}

// Finds a column by its name.
Result<ArrowColumn> FindColumn(const ArrowBatches& file, const std::string& in_file,
                               const std::string& name) {
  ArrowColumn column{.name = name, .in_file = in_file};
  const std::vector<ArrowField>& fields = file.schema().fields;
  const auto count = std::ranges::count(fields, in_file, &ArrowField::name);
  if (count != 1) {
    return Error{.code = Code::kInvalidArgument,
                 .cause = count == 0 ? "there is no column '" + Printable(in_file) +
                                           "'; there is " + ListColumns(fields)
                                     : std::to_string(count) + " columns have the name '" +
                                           Printable(in_file) + "'",
                 .advice = count == 0 ? AdviceWithout(name) : ""};
  }
  auto field = fields.begin();
  for (; field->name != in_file; ++field) {
    PassField(*field, file.has_union_validity(), column.position);
  }
  column.field = *field;
  return column;
}

// Replaces a struct, such as Hugging Face's Image, by the bytes in it.
Status EnterStruct(bool has_union_validity, ArrowColumn& column) {
  const ArrowField whole = column.field;
  column.around.push_back(column.position);
  ++column.position.nodes;
  ++column.position.buffers;
  for (const ArrowField& child : whole.children) {
    column.field = child;
    if (child.name == "bytes") return {};
    PassField(child, has_union_validity, column.position);
  }
  column.field = whole;
  return BadColumn(column, ", in which there are no bytes");
}

// Replaces a list of images by its images.
Status EnterList(ArrowColumn& column) {
  const ArrowType type = column.field.type;
  const bool is_fixed = type == ArrowType::kFixedSizeList;
  if (!is_fixed && type != ArrowType::kList && type != ArrowType::kLargeList) return {};
  if (column.field.is_dictionary || column.field.children.size() != 1) return {};
  if (is_fixed && column.field.width < 1) return BadColumn(column, ", a list without elements");
  column.list = column.field;
  column.list_position = column.position;
  ++column.position.nodes;
  column.position.buffers += is_fixed ? 1 : 2;
  column.field = column.list.children[0];
  return {};
}

Result<ArrowColumn> ImageColumn(const ArrowBatches& file, const std::string& name) {
  ASSIGN_OR_RETURN(ArrowColumn column, FindColumn(file, name, "image"));
  TRY(EnterList(column));
  if (column.field.type == ArrowType::kStruct) {
    TRY(EnterStruct(file.has_union_validity(), column));
  }
  if (IsBinary(column.field.type) && !column.field.is_dictionary) return column;
  return BadColumn(column,
                   "; encoded images are binary, large_binary, Hugging Face's Image, or lists of "
                   "one of these");
}

// Replaces a fixed-size list by its elements, and sets the shape of a row.
Status EnterLists(ArrowColumn& column) {
  constexpr uint64_t kMost = uint64_t{1} << 32;
  const ArrowColumn whole = column;
  uint64_t elements = 1;
  while (column.field.type == ArrowType::kFixedSizeList && column.field.children.size() == 1) {
    if (column.field.width < 1) return BadColumn(whole, ", a list without elements");
    const auto width = static_cast<uint64_t>(column.field.width);
    if (width > kMost / elements) return BadColumn(whole, ": a row has more than 2^32 elements");
    elements *= width;
    column.around.push_back(column.position);
    column.row_shape.push_back(column.field.width);
    ++column.position.nodes;
    ++column.position.buffers;
    const ArrowField child = column.field.children[0];
    column.field = child;
  }
  return {};
}

Result<ArrowColumn> ValueColumnOf(const ArrowBatches& file, const std::string& in_file,
                                  const std::string& name) {
  ASSIGN_OR_RETURN(ArrowColumn column, FindColumn(file, in_file, name));
  const ArrowColumn whole = column;
  if (!column.field.is_dictionary) TRY(EnterLists(column));
  const bool in_list = !column.row_shape.empty();
  if (!in_list && !column.field.is_dictionary && IsBinary(column.field.type)) {
    column.dtype = DType::kBytes;
  } else if (!in_list && !column.field.is_dictionary && IsText(column.field.type)) {
    column.dtype = DType::kString;
  } else if (const std::optional<DType> number = NumberType(column.field)) {
    column.dtype = *number;
  } else {
    return BadColumn(whole,
                     "; columns are numbers, bool, fixed-size lists of numbers, string, "
                     "large_string, binary and large_binary");
  }
  return column;
}

Result<ArrowColumn> LabelColumn(const ArrowBatches& file, const std::string& in_file) {
  ASSIGN_OR_RETURN(ArrowColumn column, ValueColumnOf(file, in_file, "label"));
  const bool is_number = column.field.type == ArrowType::kInt || column.dtype == DType::kBool;
  const bool is_label = column.dtype == DType::kString || (is_number && column.row_shape.empty());
  if (!is_label) return BadColumn(column, "; labels are integers, bool, string or large_string");
  return column;
}

// Returns the name of the column of labels in the file; empty means there is none.
std::string LabelOf(const ArrowSchema& schema, const ArrowOptions& options) {
  if (options.label) return *options.label;
  const bool has =
      std::ranges::find(schema.fields, "label", &ArrowField::name) != schema.fields.end();
  return has && options.image != "label" ? "label" : "";
}

}  // namespace

Result<ArrowColumns> ChooseArrowColumns(const ArrowBatches& file, const ArrowOptions& options) {
  ArrowColumns chosen;
  ASSIGN_OR_RETURN(ArrowColumn image, ImageColumn(file, options.image));
  chosen.columns.push_back(std::move(image));
  const std::string label = LabelOf(file.schema(), options);
  chosen.has_label = !label.empty();
  if (chosen.has_label) {
    ASSIGN_OR_RETURN(ArrowColumn column, LabelColumn(file, label));
    if (column.dtype != DType::kString) {
      chosen.class_names = ClassLabelNames(file.schema().huggingface, label);
    }
    chosen.columns.push_back(std::move(column));
  }
  for (const std::string& name : options.columns) {
    if (name == "image" || name == "label" || !IsColumnName(name)) {
      return Error{Code::kInvalidArgument, "arrow: columns has the name '" + Printable(name) +
                                               "', which cannot be a further column's"};
    }
    if (std::ranges::find(chosen.columns, name, &ArrowColumn::name) != chosen.columns.end()) {
      return Error{Code::kInvalidArgument, "arrow: columns has '" + name + "' twice"};
    }
    ASSIGN_OR_RETURN(ArrowColumn column, ValueColumnOf(file, name, name));
    chosen.columns.push_back(std::move(column));
  }
  return chosen;
}

}  // namespace stoker
