// ObjectValues: the rows of one column of objects, added as a file is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result/result.h"
#include "io/annotations/keyed_column.h"
#include "io/manifest/value_column.h"
#include "io/memory/arrays.h"

namespace stoker {

// Objects are added sample by sample. Each is a single value, or a list of values. Boxes, keypoints
// and columns with a dtype take the bytes of their numbers; others 8 bytes a number, as int64, or
// as float64 if one of them is not an integer, and 1 for a bool. Not thread-safe until the last
// sample is added.
//
// Errors are InvalidArguments that name the column, without a file: a value of another type or
// length than those before it, one that the dtype cannot hold, a box that is not 4 finite numbers
// or has a negative side, points that are not 3 such numbers each, no numbers at all. After one,
// the object must not be used.
class ObjectValues {
 public:
  // Precondition: column.is_of_objects().
  explicit ObjectValues(KeyedColumn column);

  const KeyedColumn& column() const { return column_; }
  uint64_t objects() const { return objects_; }
  uint64_t samples() const { return offsets_.size() - 1; }
  // Objects of the last sample, or of the one that is being added.
  uint64_t objects_since(uint64_t sample) const {
    return objects_ - static_cast<uint64_t>(offsets_[sample]);
  }

  // Add a value: an object, or between the two calls below a part of one.
  Status AddInteger(int64_t value);
  Status AddNumber(double value);
  Status AddBoolean(bool value);
  Status AddText(std::string_view text);  // only "labels"
  Status BeginList();
  Status EndList();
  void EndSample() { offsets_.push_back(static_cast<int64_t>(objects_)); }

  // Checks what only all objects show: that the points of flip_pairs exist.
  Status Finish();

  // Replaces text by the numbers of its values in sorted order, and returns the sorted values;
  // empty for other values.
  std::vector<std::string> NumberClasses() { return values_.NumberClasses(); }

  // Returns the column; valid as long as this object lives, does not move, and gets no more
  // values. Precondition: Finish returned success.
  ArrayColumn View() const;

 private:
  template <typename Value>
  bool Append(Value value);
  template <typename Value>
  Status AddTyped(Value value);
  Status AddUntyped(bool added, const char* what);
  Status CheckCoordinates() const;
  Status EndTyped();
  size_t points() const;
  Error Refuse(const std::string& cause, std::string advice = "") const;

  KeyedColumn column_;
  std::optional<DType> dtype_;       // that is known beforehand; otherwise `values_` has the rows
  std::vector<int64_t> offsets_{0};  // of the samples' objects
  uint64_t objects_ = 0;
  bool in_list_ = false;
  std::vector<uint8_t> bytes_;   // of the rows, with dtype_
  size_t list_begin_ = 0;        // of the list that is being added
  std::optional<size_t> width_;  // numbers of each object, with dtype_
  bool are_lists_ = false;       // whether the objects before, with dtype_, are lists
  ValueColumn values_;
};

}  // namespace stoker
