// ValueColumn: the values of one column of a manifest, whose type the values decide.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/sources/arrays.h"
#include "io/sources/string_rows.h"
#include "io/sources/text_file.h"

namespace stoker {

// Rows are added in their order: 8 bytes for a number, 16 and its own for a text. Not thread-safe
// until the last one is added.
class ValueColumn {
 public:
  enum class Type : uint8_t { kUnknown, kInteger, kNumber, kText, kBoolean };

  explicit ValueColumn(std::string name) : name_(std::move(name)) {}

  const std::string& name() const { return name_; }
  Type type() const { return type_; }
  uint64_t rows() const { return rows_; }

  // A field of a text. The column is of int64 while all fields are integers, of float64 while all
  // are numbers, and otherwise of text. An empty one fits any type: a number's is 0 then, and
  // first_empty() is its place.
  void AddField(std::string_view field, const TextPlace& place);
  const std::optional<TextPlace>& first_empty() const { return first_empty_; }

  // Values whose type is known. False: this one does not fit those before it; an integer fits
  // numbers, and a number integers.
  bool AddInteger(int64_t value);
  bool AddNumber(double value);
  bool AddBoolean(bool value);
  bool AddText(std::string_view text);

  // The integers and numbers that are added between the two are one row. False: the rows before it
  // are not vectors, or not as long, or it is empty.
  bool BeginVector();
  bool EndVector();

  // Whether text came behind numbers, whose own text is lost: the column has no values, and the
  // file has to be read again into one for which BeText() was called before the first field.
  bool lost_text() const { return lost_text_; }
  void BeText() { type_ = Type::kText; }

  // For the column of labels: replaces text by the numbers of its values in sorted order, and
  // returns these. Nothing happens to numbers.
  std::vector<std::string> NumberClasses();

  // The column as a source takes it; valid as long as this is, does not move, and gets no more
  // rows.
  ArrayColumn View() const;

 private:
  void BecomeNumber();
  void BecomeText();
  bool Accepts(Type type);
  void EndValue();

  std::string name_;
  Type type_ = Type::kUnknown;
  uint64_t rows_ = 0;
  bool lost_text_ = false;
  std::optional<TextPlace> first_empty_;
  std::optional<size_t> width_;  // of vectors; nullopt: rows are single values
  bool in_vector_ = false;
  size_t elements_ = 0;  // of the vector that is being added

  // One of these has the values.
  std::vector<int64_t> integers_;
  std::vector<double> numbers_;
  std::vector<uint8_t> booleans_;
  StringRows texts_;
};

}  // namespace stoker
