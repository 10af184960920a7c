#include "io/tfrecord/tfrecord_objects.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "core/result/plural.h"
#include "core/result/try.h"
#include "core/result/utf8.h"

namespace stoker {

namespace {

Error WrongObjects(std::string cause, std::string advice = "") {
  return {.code = Code::kInvalidArgument, .cause = std::move(cause), .advice = std::move(advice)};
}

// Returns all values of a feature of floats or of integers.
template <typename Number>
Result<std::vector<Number>> NumbersOf(const TfFeature& feature) {
  ASSIGN_OR_RETURN(const uint64_t count, CountValues(feature));
  std::vector<Number> numbers(count);
  auto* const bytes = reinterpret_cast<uint8_t*>(numbers.data());
  TRY(CopyValues(feature, std::span(bytes, count * sizeof(Number))));
  return numbers;
}

Status AddBoxes(const std::vector<std::vector<float>>& sides, ObjectValues& values) {
  for (size_t i = 0; i < sides.front().size(); ++i) {
    TRY(values.BeginList());
    for (const std::vector<float>& side : sides) TRY(values.AddNumber(side[i]));
    TRY(values.EndList());
  }
  return {};
}

Status AddValues(const TfFeature& feature, ObjectValues& values) {
  if (feature.kind == TfFeature::Kind::kFloats) {
    ASSIGN_OR_RETURN(const std::vector<float> numbers, NumbersOf<float>(feature));
    for (const float number : numbers) TRY(values.AddNumber(number));
  } else if (feature.kind == TfFeature::Kind::kIntegers) {
    ASSIGN_OR_RETURN(const std::vector<int64_t> numbers, NumbersOf<int64_t>(feature));
    for (const int64_t number : numbers) TRY(values.AddInteger(number));
  } else {
    ASSIGN_OR_RETURN(const auto texts, AllBytes(feature));
    for (const std::string_view text : texts) {
      if (!IsUtf8(text)) {
        return WrongObjects("'" + values.column().field.name + "' has text that is not UTF-8");
      }
      TRY(values.AddText(text));
    }
  }
  return {};
}

// Whether all coordinates lie between 0 and 1, and there are some.
bool AreFractions(const ObjectValues& values) {
  const ArrayColumn view = values.View();
  std::vector<float> numbers(4 * values.objects());
  if (numbers.empty()) return false;
  std::memcpy(numbers.data(), view.data, numbers.size() * sizeof(float));
  return std::ranges::all_of(numbers, [](float x) { return x >= 0 && x <= 1; });
}

}  // namespace

Result<TfRecordObjects> TfRecordObjects::Make(const std::vector<KeyedColumn>& columns) {
  TfRecordObjects made;
  for (const KeyedColumn& column : columns) {
    const Field& field = column.field;
    const std::string named = "tfrecord: the column '" + Printable(field.name) + "' ";
    const bool is_box = field.kind == Field::Kind::kBoxes;
    if (is_box && field.box_format != BoxFormat::kXyxy) {
      return WrongObjects(named + "has boxes of the format " + NameOf(field.box_format) +
                              ", and the features are xmin, ymin, xmax and ymax",
                          "Give format=\"xyxy\"; ConvertBoundingBoxFormat converts them");
    }
    if (!is_box && field.kind != Field::Kind::kObject) {
      return WrongObjects(named + "is of masks or keypoints, which are not read from TFRecords");
    }
    Column added{.described = column, .features = {}};
    for (const char* side : {"/xmin", "/ymin", "/xmax", "/ymax"}) {
      const std::string feature = is_box ? column.key + side : column.key;
      const auto found = std::ranges::find(made.features_, feature);
      added.features.push_back(static_cast<size_t>(found - made.features_.begin()));
      if (found == made.features_.end()) made.features_.push_back(feature);
      if (!is_box) break;
    }
    made.columns_.push_back(std::move(added));
  }
  made.kinds_.resize(made.features_.size());
  return made;
}

// Checks that a feature has one type in all records.
Status TfRecordObjects::SetKind(size_t feature, TfFeature::Kind kind) {
  if (kind == TfFeature::Kind::kNone || kind == kinds_[feature]) return {};
  if (kinds_[feature] == TfFeature::Kind::kNone) {
    kinds_[feature] = kind;
    return {};
  }
  return WrongObjects("feature '" + Printable(features_[feature]) + "' is " + NameOf(kind) +
                          ", and " + NameOf(kinds_[feature]) + " in the records before",
                      "Give files in which all records have one type");
}

Status TfRecordObjects::Add(const std::vector<TfRecordLists>& lists, size_t record) {
  for (size_t i = 0; i < features_.size(); ++i) TRY(SetKind(i, lists[i][record].kind));
  for (Column& column : columns_) TRY(AddTo(column, lists, record));
  const auto count = [this](const Column& column) {
    return column.values ? column.values->objects_since(records_) : 0;
  };
  for (const Column& column : columns_) {
    if (count(column) == count(columns_.front())) continue;
    const auto has = [&](const Column& of) {
      return "'" + of.described.field.name + "' has " + std::to_string(count(of)) +
             Plural(count(of), " object", " objects");
    };
    return WrongObjects(has(columns_.front()) + ", and " + has(column),
                        "All columns of objects describe the same objects");
  }
  for (Column& column : columns_) {
    if (column.values) column.values->EndSample();
  }
  ++records_;
  return {};
}

Status TfRecordObjects::AddTo(Column& column, const std::vector<TfRecordLists>& lists,
                              size_t record) {
  const size_t first = column.features.front();
  const bool is_there = std::ranges::any_of(column.features, [this](size_t feature) {
    return kinds_[feature] != TfFeature::Kind::kNone;
  });
  if (!is_there) return {};
  const bool is_box = column.described.field.kind == Field::Kind::kBoxes;
  if (!column.values) {
    const bool are_floats = kinds_[first] == TfFeature::Kind::kFloats;
    if (!is_box && are_floats && !column.described.dtype) column.described.dtype = DType::kF32;
    column.values.emplace(column.described);
    for (size_t i = 0; i < records_; ++i) column.values->EndSample();
  }
  if (!is_box) return AddValues(lists[first][record], *column.values);
  std::vector<std::vector<float>> sides;
  for (const size_t feature : column.features) {
    const TfFeature side = lists[feature][record];
    const std::string named = "feature '" + Printable(features_[feature]) + "' ";
    if (side.kind != TfFeature::Kind::kFloats && side.kind != TfFeature::Kind::kNone) {
      return WrongObjects(named + "is " + NameOf(side.kind) + ", and boxes are of float");
    }
    ASSIGN_OR_RETURN(std::vector<float> numbers, NumbersOf<float>(side));
    if (!sides.empty() && numbers.size() != sides.front().size()) {
      return WrongObjects(named + "has " + std::to_string(numbers.size()) +
                          Plural(numbers.size(), " value", " values") + ", and '" +
                          Printable(features_[first]) + "' has " +
                          std::to_string(sides.front().size()));
    }
    sides.push_back(std::move(numbers));
  }
  return AddBoxes(sides, *column.values);
}

Result<std::vector<ObjectValues>> TfRecordObjects::Take() {
  std::vector<ObjectValues> taken;
  for (Column& column : columns_) {
    if (!column.values) {
      return WrongObjects(
          "no record has the feature '" + Printable(features_[column.features.front()]) + "'",
          "Name features as they are in the files");
    }
    const Field& field = column.described.field;
    if (field.kind == Field::Kind::kBoxes && !field.normalized && AreFractions(*column.values)) {
      return WrongObjects("the boxes '" + field.name + "' lie between 0 and 1, as fractions do",
                          "Give normalized=True");
    }
    taken.push_back(*std::move(column.values));
  }
  return taken;
}

}  // namespace stoker
