#include "io/tfrecord/tfrecord_features.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <utility>

#include "core/result/try.h"
#include "core/result/utf8.h"
#include "io/tfrecord/tf_example.h"

namespace stoker {

namespace {

using Kind = TfFeature::Kind;

Error BadOption(const std::string& cause) {
  return {.code = Code::kInvalidArgument, .cause = "tfrecord: " + cause};
}

// Returns the features of an Example with their types, safe to print.
std::string ListFeatures(std::span<const uint8_t> example) {
  constexpr size_t kMost = 30, kMostOfName = 100;
  const Result<std::vector<TfFeature>> first = FirstFeatures(example, kMost + 1);
  if (!first.ok() || first->empty()) return "none";
  std::string text;
  for (size_t i = 0; i < std::min(first->size(), kMost); ++i) {
    const TfFeature& feature = (*first)[i];
    if (i != 0) text += ", ";
    for (const char c : feature.name.substr(0, kMostOfName)) {
      text += static_cast<unsigned char>(c) < ' ' || c == '\x7f' ? '?' : c;
    }
    text += std::string(" (") + NameOf(feature.kind) + ")";
  }
  return first->size() > kMost ? text + ", …" : text;
}

// Says how all records can have as many values as the first one.
std::string AdviceFor(const Field& field) {
  if (field.kind == Field::Kind::kImage) return "Write one encoded image in each record";
  if (field.is_label) return "Write one integer in each record, or give label=None";
  if (IsString(field.dtype)) {
    return "Write one in each record (tf.io.serialize_tensor makes one of several), or leave the "
           "column out";
  }
  return "Pad the values to one length, write them as one byte string (tf.io.serialize_tensor), or "
         "leave the column out";
}

Error WithAdvice(Error error, const Field& field) {
  if (error.code == Code::kUnimplemented) error.advice = AdviceFor(field);
  return error;
}

// Sets a label's or a column's type and shape.
Status SetType(const TfFeature& feature, const std::string& name, Field& field) {
  constexpr uint64_t kMostValues = 1 << 16;
  const std::string named = "feature '" + name + "'";
  ASSIGN_OR_RETURN(const uint64_t values, CountValues(feature));
  if (feature.kind == Kind::kBytes && !field.is_label) {
    field.dtype = DType::kBytes;
    if (values == 1) return {};
    return Error{.code = Code::kUnimplemented,
                 .cause = named + " holds " + std::to_string(values) +
                          " byte strings in the first record; a column has one",
                 .advice = AdviceFor(field)};
  }
  if (field.is_label && (feature.kind != Kind::kIntegers || values != 1)) {
    return Error{.code = Code::kInvalidArgument,
                 .cause = named + " is not a label, which is one int64: the first record has " +
                          std::to_string(values) + " (" + NameOf(feature.kind) + ")",
                 .advice = AdviceFor(field)};
  }
  if (values == 0 || values > kMostValues) {
    return Error{.code = Code::kUnimplemented,
                 .cause = named + " has " + std::to_string(values) +
                          " values in the first record; a column has 1 to " +
                          std::to_string(kMostValues),
                 .advice = AdviceFor(field)};
  }
  field.dtype = feature.kind == Kind::kFloats ? DType::kF32 : DType::kI64;
  if (values != 1) field.row_shape = {static_cast<int64_t>(values)};
  return {};
}

Kind KindOf(const Field& field) {
  if (field.kind == Field::Kind::kImage || IsString(field.dtype)) return Kind::kBytes;
  return field.dtype == DType::kF32 ? Kind::kFloats : Kind::kIntegers;
}

Error WrongKind(const TfFeature& feature, const std::string& name, const Field& field) {
  const std::string or_not = field.kind == Field::Kind::kImage ? ""
                             : field.is_label                  ? ", or give label=None"
                                                               : ", or leave the column out";
  if (feature.kind == Kind::kNone) {
    return {.code = Code::kUnimplemented,
            .cause = "the record has no feature '" + name + "', or no values in it",
            .advice = "Give files in which each record has it" + or_not};
  }
  return {.code = Code::kUnimplemented,
          .cause = "feature '" + name + "' is " + NameOf(feature.kind) + ", and " +
                   NameOf(KindOf(field)) + " in the first record",
          .advice = "Give files in which all records have one type" + or_not};
}

// Returns a column's string, as a view of the record.
Result<std::string_view> StringOf(const TfFeature& feature) {
  constexpr size_t kLongest = 1 << 20;
  ASSIGN_OR_RETURN(const std::span<const uint8_t> bytes, OnlyBytes(feature));
  if (bytes.size() <= kLongest) {
    return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  return Error{.code = Code::kResourceExhausted,
               .cause = "feature '" + std::string(feature.name) + "' has " +
                        std::to_string(bytes.size()) + " bytes; a column's have at most " +
                        std::to_string(kLongest),
               .detail = Error::Detail::kOverLimits};
}

Status CopyRow(const TfFeature& feature, const Field& field, std::span<uint8_t> row) {
  if (!IsString(field.dtype)) return CopyValues(feature, row);
  ASSIGN_OR_RETURN(const std::string_view string, StringOf(feature));
  std::memcpy(row.data(), &string, row.size());
  return {};
}

}  // namespace

Result<TfRecordFeatures> FeaturesOf(const TfRecordOptions& options) {
  if (options.image.empty()) return BadOption("image is empty; it is the name of a feature");
  TfRecordFeatures features{.names = {options.image},
                            .fields = {{.name = "image", .kind = Field::Kind::kImage}}};
  const auto add = [&features](const std::string& feature, const std::string& column) {
    features.names.push_back(feature);
    features.fields.push_back(
        {.name = column, .kind = Field::Kind::kLoaded, .is_label = column == "label"});
  };
  if (!options.label.empty()) add(options.label, "label");
  for (const std::string& name : options.columns) {
    if (name.empty() || name == "image" || name == "label" || !IsColumnName(name)) {
      return BadOption("columns has the name '" + Printable(name) +
                       "', which cannot be a further column's");
    }
    if (std::ranges::find(features.fields, name, &Field::name) != features.fields.end()) {
      return BadOption("columns has '" + name + "' twice");
    }
    add(name, name);
  }
  for (const KeyedColumn& column : options.keyed) {
    const std::string& name = column.field.name;
    const bool is_taken =
        std::ranges::find(features.fields, name, &Field::name) != features.fields.end();
    if (is_taken) return BadOption("two columns have the name '" + name + "'");
    if (column.field.kind == Field::Kind::kFixed) add(column.key, name);
  }
  if (features.names.size() > kMostTfFeatures) {
    return BadOption("there are " + std::to_string(options.columns.size()) +
                     " columns; with image and label there are at most " +
                     std::to_string(kMostTfFeatures));
  }
  return features;
}

Status SetTypes(std::span<const uint8_t> example, TfRecordFeatures& features) {
  std::array<TfFeature, kMostTfFeatures> found;
  const size_t count = features.names.size();
  TRY(FindFeatures(example, features.names, std::span(found).first(count)));
  for (size_t i = 0; i < count; ++i) {
    const std::string& name = features.names[i];
    if (found[i].name.data() == nullptr) {
      return Error{.code = Code::kInvalidArgument,
                   .cause = "the first record has no feature '" + name + "'; it has " +
                            ListFeatures(example)};
    }
    if (i != 0) {
      TRY(SetType(found[i], name, features.fields[i]));
    } else if (found[i].kind != Kind::kBytes) {
      return Error{.code = Code::kInvalidArgument,
                   .cause = "feature '" + name +
                            "' is not an encoded image, which is bytes: the first " +
                            "record has " + NameOf(found[i].kind)};
    }
  }
  return {};
}

Result<std::span<const uint8_t>> UnpackExample(std::span<const uint8_t> example,
                                               const TfRecordFeatures& features,
                                               std::span<uint8_t> rows) {
  std::array<TfFeature, kMostTfFeatures> found;
  const size_t count = features.names.size();
  TRY(FindFeatures(example, features.names, std::span(found).first(count)));
  for (size_t i = 0; i < count; ++i) {
    const Field& field = features.fields[i];
    if (found[i].kind != KindOf(field)) return WrongKind(found[i], features.names[i], field);
    if (i == 0) continue;
    const size_t bytes = field.row_bytes();
    Status status = CopyRow(found[i], field, rows.first(bytes));
    if (!status.ok()) return WithAdvice(std::move(status).error(), field);
    rows = rows.subspan(bytes);
  }
  Result<std::span<const uint8_t>> image = OnlyBytes(found[0]);
  if (!image.ok()) return WithAdvice(std::move(image).error(), features.fields[0]);
  return image;
}

}  // namespace stoker
