#include "io/manifest/value_column.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "io/manifest/number_text.h"

namespace stoker {

void ValueColumn::AddField(std::string_view field, const TextPosition& position) {
  if (field.empty() && !first_empty_) first_empty_ = position;
  if (lost_text_ || (field.empty() && type_ == Type::kUnknown)) {
    ++rows_;
    return;
  }
  if (type_ != Type::kText) {
    const std::optional<int64_t> integer = field.empty() ? 0 : IntegerOf(field);
    if (integer && AddInteger(*integer)) return;
    const std::optional<double> number = NumberOf(field);
    if (number && AddNumber(*number)) return;
    BecomeText();
  }
  if (lost_text_) {
    ++rows_;
  } else {
    AddText(field);
  }
}

bool ValueColumn::AddInteger(int64_t value) {
  if (type_ == Type::kNumber) return AddNumber(static_cast<double>(value));
  if (type_ == Type::kUnknown) integers_.assign(rows_, 0);  // the empty fields
  if (!Accepts(Type::kInteger)) return false;
  integers_.push_back(value);
  EndValue();
  return true;
}

bool ValueColumn::AddNumber(double value) {
  if (type_ <= Type::kInteger) BecomeNumber();
  if (!Accepts(Type::kNumber)) return false;
  numbers_.push_back(value);
  EndValue();
  return true;
}

bool ValueColumn::AddBoolean(bool value) {
  if (in_vector_ || !Accepts(Type::kBoolean)) return false;
  booleans_.push_back(value ? 1 : 0);
  EndValue();
  return true;
}

bool ValueColumn::AddText(std::string_view text) {
  if (in_vector_ || !Accepts(Type::kText)) return false;
  texts_.Add(text);
  EndValue();
  return true;
}

bool ValueColumn::BeginVector() {
  if (rows_ != 0 && !width_) return false;
  in_vector_ = true;
  elements_ = 0;
  return true;
}

bool ValueColumn::EndVector() {
  in_vector_ = false;
  ++rows_;
  if (!width_) width_ = elements_;
  return elements_ == *width_ && elements_ != 0;
}

std::string ValueColumn::DescribeRow() const {
  if (width_) return "a list of " + std::to_string(*width_);
  if (type_ == Type::kText) return "text";
  return type_ == Type::kBoolean ? "true or false" : "a number";
}

// Returns whether a value of this type may be added; the first value decides for all.
bool ValueColumn::Accepts(Type type) {
  if (width_ && !in_vector_) return false;
  if (type_ == Type::kUnknown) type_ = type;
  return type_ == type;
}

void ValueColumn::EndValue() { ++(in_vector_ ? elements_ : rows_); }

void ValueColumn::BecomeNumber() {
  if (type_ == Type::kUnknown) integers_.assign(rows_, 0);  // the empty fields
  numbers_.assign(integers_.begin(), integers_.end());
  std::vector<int64_t>().swap(integers_);
  type_ = Type::kNumber;
}

void ValueColumn::BecomeText() {
  lost_text_ = type_ != Type::kUnknown;
  type_ = Type::kText;
  std::vector<int64_t>().swap(integers_);
  std::vector<double>().swap(numbers_);
  for (uint64_t row = 0; row < rows_ && !lost_text_; ++row) texts_.Add({});
}

std::vector<std::string> ValueColumn::NumberClasses() {
  if (type_ != Type::kText) return {};
  std::unordered_map<std::string_view, int64_t> numbers;
  for (const std::string_view text : texts_.rows()) numbers.emplace(text, 0);
  std::vector<std::string> classes;
  classes.reserve(numbers.size());
  for (const auto& [text, number] : numbers) classes.emplace_back(text);
  std::ranges::sort(classes);
  for (size_t i = 0; i < classes.size(); ++i) numbers[classes[i]] = static_cast<int64_t>(i);
  integers_.reserve(texts_.size());
  for (const std::string_view text : texts_.rows()) integers_.push_back(numbers[text]);
  numbers.clear();
  texts_ = {};
  type_ = Type::kInteger;
  return classes;
}

ArrayColumn ValueColumn::View() const {
  if (type_ == Type::kText) return texts_.Column(name_, DType::kString);
  ArrayColumn column{name_, DType::kI64, {}, integers_.data(), rows_};
  if (type_ == Type::kNumber) {
    column.dtype = DType::kF64;
    column.data = numbers_.data();
  }
  if (type_ == Type::kBoolean) {
    column.dtype = DType::kBool;
    column.data = booleans_.data();
  }
  if (width_) column.row_shape = {static_cast<int64_t>(*width_)};
  return column;
}

}  // namespace stoker
