// ValueColumn: the values of one column of a manifest; the values determine its type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/files/text_file.h"
#include "io/memory/arrays.h"
#include "io/memory/string_rows.h"

namespace stoker {

// Rows are added in their order. A number takes 8 bytes, a text 16 plus its length. Not thread-safe
// until the last row is added.
class ValueColumn {
 public:
  enum class Type : uint8_t { kUnknown, kInteger, kNumber, kText, kBoolean };

  explicit ValueColumn(std::string name) : name_(std::move(name)) {}

  const std::string& name() const { return name_; }
  Type type() const { return type_; }
  uint64_t rows() const { return rows_; }

  // Adds a field of a text. The column is of int64 while all fields are integers, of float64 while
  // all are numbers, and otherwise of text. An empty field fits any type: for a number it is 0, and
  // first_empty() is its position.
  void AddField(std::string_view field, const TextPosition& position);
  const std::optional<TextPosition>& first_empty() const { return first_empty_; }

  // Add a value whose type is known. Return false if it does not fit the values before it; an
  // integer fits numbers, and a number fits integers.
  bool AddInteger(int64_t value);
  bool AddNumber(double value);
  bool AddBoolean(bool value);
  bool AddText(std::string_view text);

  // Integers and numbers added between the two calls are one row. Return false if the rows before
  // it are not vectors, or have another length, or if it is empty.
  bool BeginVector();
  bool EndVector();
  size_t elements() const { return elements_; }  // of the vector that was added last

  // Returns what its rows are, for messages: "a list of 2". Precondition: there is a row.
  std::string DescribeRow() const;

  // Whether text followed numbers, whose original text is lost: the column then has no values, and
  // the file must be read again into a column for which BeText() is called before the first field.
  bool lost_text() const { return lost_text_; }
  void BeText() { type_ = Type::kText; }

  // Replaces text by the numbers of its values in sorted order, and returns the sorted values, for
  // the column of labels. Numbers stay as they are.
  std::vector<std::string> NumberClasses();

  // Returns the column in the form that a source takes; valid as long as this object lives, does
  // not move, and gets no more rows.
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
  std::optional<TextPosition> first_empty_;
  std::optional<size_t> width_;  // of vectors; nullopt means rows are single values
  bool in_vector_ = false;
  size_t elements_ = 0;  // of the vector that is being added, or was last

  // One of these has the values.
  std::vector<int64_t> integers_;
  std::vector<double> numbers_;
  std::vector<uint8_t> booleans_;
  StringRows texts_;
};

}  // namespace stoker
