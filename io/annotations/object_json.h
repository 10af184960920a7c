// ObjectJson: reads the values of objects from JSON documents, one for each sample.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result/result.h"
#include "io/annotations/keyed_column.h"
#include "io/annotations/object_values.h"
#include "io/files/json_reader.h"
#include "io/files/text_file.h"

namespace stoker {

// A key is a path of keys, joined by dots. Both common layouts are read, also in one document:
//
//   {"objects": {"bbox": [[1, 2, 3, 4], …], "id": [7, …]}}     "objects.bbox", "objects.id"
//   {"objects": [{"bbox": [1, 2, 3, 4], "id": 7}, …]}          likewise
//
// An empty key means that the document itself is the list. A box is a list of four numbers;
// keypoints are a list of points or of their numbers; another value is a number, true or false, or
// a list of numbers, and in the column "labels" it may be text. For one thread.
class ObjectJson {
 public:
  // InvalidArgument: two columns with one key, or one with a key inside of another one's value.
  // Precondition: all columns are of objects.
  static Result<ObjectJson> Make(const std::vector<KeyedColumn>& columns);

  // Adds a document's objects as those of the next sample. Errors are those of JsonReader and
  // ObjectValues, with the document's path and an offset in it: a key that is missing, or occurs
  // twice, values of another type, columns with different numbers of objects. After one, this
  // object must not be used.
  Status Read(TextFile document, const JsonWords& words = {});

  // In the order of Make's.
  std::vector<ObjectValues>& columns() { return columns_; }

 private:
  // A key of the documents that leads to values.
  struct Node {
    std::string key;
    std::vector<Node> children;
    std::optional<size_t> column;  // whose values are here; then there are no children
    uint64_t seen = 0;             // the last object of JSON, by number, that had the key
  };

  Status AddPath(std::string_view key, size_t column);
  Status ReadNode(JsonReader& reader, Node& node, bool in_list);
  Status ReadMembers(JsonReader& reader, Node& node, bool in_list);
  Status ReadRows(JsonReader& reader, ObjectValues& values);
  Status ReadRow(JsonReader& reader, ObjectValues& values);
  Status ReadValue(JsonReader& reader, ObjectValues& values);
  Status CheckNumbers(const JsonReader& reader) const;

  Node root_;
  std::vector<ObjectValues> columns_;
  uint64_t object_ = 0;  // the number of the JSON object that was entered last, from 1
  std::string text_;
};

}  // namespace stoker
