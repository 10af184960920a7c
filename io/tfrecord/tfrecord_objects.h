// TfRecordObjects: the objects in the records of TFRecord files.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/result/result.h"
#include "io/annotations/keyed_column.h"
#include "io/annotations/object_values.h"
#include "io/tfrecord/tfrecord_lists.h"

namespace stoker {

// Collects the objects of records, as TensorFlow's Object Detection API writes them: boxes in the
// features KEY/xmin, KEY/ymin, KEY/xmax and KEY/ymax, and other values, one for each object, in the
// feature KEY. A record without the feature has no objects. Integers are int64, floats float32, and
// byte strings, of "labels" only, the names of classes.
class TfRecordObjects {
 public:
  // InvalidArgument: a column that is neither boxes of the format xyxy nor other values.
  static Result<TfRecordObjects> Make(const std::vector<KeyedColumn>& columns);

  // The features to be read, without one twice.
  const std::vector<std::string>& features() const { return features_; }

  // Adds a record. `lists` are those that the features have in the record's file. Errors have no
  // file: a feature of another type than in the records before, features or columns with different
  // numbers of values, bytes that are not UTF-8.
  Status Add(const std::vector<TfRecordLists>& lists, size_t record);

  // Returns the columns once all records are added. InvalidArgument: no record has a feature, or
  // all boxes lie between 0 and 1, and the column is not normalized.
  Result<std::vector<ObjectValues>> Take();

 private:
  struct Column {
    KeyedColumn described;
    std::vector<size_t> features;          // indices into features_: four for boxes, otherwise one
    std::optional<ObjectValues> values{};  // once a record has the feature
  };

  Status AddTo(Column& column, const std::vector<TfRecordLists>& lists, size_t record);
  Status SetKind(size_t feature, TfFeature::Kind kind);

  std::vector<std::string> features_;
  std::vector<TfFeature::Kind> kinds_;  // by feature; kNone until a record has it
  std::vector<Column> columns_;
  size_t records_ = 0;
};

}  // namespace stoker
