#include "io/annotations/object_json.h"

#include <algorithm>
#include <utility>

#include "core/result/plural.h"
#include "core/result/try.h"
#include "core/result/utf8.h"

namespace stoker {

namespace {

// Adds the position of a value to an error of ObjectValues.
Status AtValue(const JsonReader& reader, uint64_t offset, Status status) {
  if (status.ok()) return status;
  Error error = std::move(status).error();
  error.file = reader.path();
  error.offset = offset;
  return error;
}

}  // namespace

Result<ObjectJson> ObjectJson::Make(const std::vector<KeyedColumn>& columns) {
  ObjectJson made;
  for (const KeyedColumn& column : columns) {
    TRY(made.AddPath(column.key, made.columns_.size()));
    made.columns_.emplace_back(column);
  }
  return made;
}

Status ObjectJson::AddPath(std::string_view key, size_t column) {
  const auto refuse = [&](const char* what) {
    return Error{.code = Code::kInvalidArgument,
                 .cause = "the key '" + Printable(key) + "' " + what,
                 .advice = "Give each column a key of its own, like \"objects.bbox\""};
  };
  constexpr size_t kMostKeys = 16;
  Node* node = &root_;
  size_t keys = 0;
  for (size_t begin = 0; !key.empty() && begin <= key.size();) {
    const size_t end = std::min(key.find('.', begin), key.size());
    const std::string part(key.substr(begin, end - begin));
    begin = end + 1;
    if (part.empty()) return refuse("has a dot without a key next to it");
    if (++keys > kMostKeys) return refuse("has more than 16 parts");
    if (node->column) return refuse("is inside of another column's values");
    const auto found = std::ranges::find(node->children, part, &Node::key);
    if (found != node->children.end()) {
      node = &*found;
    } else {
      node->children.push_back({.key = part, .children = {}, .column = {}});
      node = &node->children.back();
    }
  }
  if (node->column) return refuse("belongs to two columns");
  if (!node->children.empty()) return refuse("is around another column's values");
  node->column = column;
  return {};
}

Status ObjectJson::Read(TextFile document, const JsonWords& words) {
  JsonReader reader(std::move(document), words);
  TRY(ReadNode(reader, root_, /*in_list=*/false));
  TRY(reader.End());
  TRY(CheckNumbers(reader));
  for (ObjectValues& values : columns_) values.EndSample();
  return {};
}

// Checks that all columns have the same objects.
Status ObjectJson::CheckNumbers(const JsonReader& reader) const {
  const auto number = [](const ObjectValues& values) {
    return values.objects_since(values.samples());
  };
  for (const ObjectValues& values : columns_) {
    if (number(values) == number(columns_.front())) continue;
    const auto has = [&](const ObjectValues& of) {
      return "'" + of.column().field.name + "' has " + std::to_string(number(of)) +
             Plural(number(of), " object", " objects");
    };
    return Error{.code = Code::kInvalidArgument,
                 .cause = has(columns_.front()) + ", and " + has(values),
                 .file = reader.path(),
                 .offset = 0,
                 .advice = "All columns of objects describe the same objects"};
  }
  return {};
}

// Reads the values under a node. `in_list`: of one object in a list of objects.
Status ObjectJson::ReadNode(JsonReader& reader, Node& node, bool in_list) {
  if (node.column) {
    ObjectValues& values = columns_[*node.column];
    return in_list ? ReadRow(reader, values) : ReadRows(reader, values);
  }
  ASSIGN_OR_RETURN(const JsonReader::Type type, reader.Peek());
  if (type == JsonReader::Type::kObject) return ReadMembers(reader, node, in_list);
  if (type == JsonReader::Type::kList && !in_list) {
    return reader.ForEachValue([&] { return ReadNode(reader, node, /*in_list=*/true); });
  }
  const std::string what = node.key.empty() ? "this" : "'" + Printable(node.key) + "'";
  return reader.Refuse(what + " is not an object" + (in_list ? "" : ", or a list of objects") +
                       ", with the key '" + Printable(node.children.front().key) + "'");
}

Status ObjectJson::ReadMembers(JsonReader& reader, Node& node, bool in_list) {
  const uint64_t object = ++object_;
  const auto named = [](const Node& child) { return "key '" + Printable(child.key) + "'"; };
  TRY(reader.ForEachMember([&]() -> Status {
    const auto child = std::ranges::find(node.children, reader.key(), &Node::key);
    if (child == node.children.end()) return reader.Skip();
    if (std::exchange(child->seen, object) == object) {
      return reader.Refuse(named(*child) + " occurs twice");
    }
    return ReadNode(reader, *child, in_list);
  }));
  for (const Node& child : node.children) {
    if (child.seen == object) continue;
    return reader.Refuse(named(child) + " is missing in the object that ends here",
                         "Write it everywhere, with an empty list if there are no objects");
  }
  return {};
}

Status ObjectJson::ReadRows(JsonReader& reader, ObjectValues& values) {
  ASSIGN_OR_RETURN(const JsonReader::Type type, reader.Peek());
  if (type != JsonReader::Type::kList) {
    return reader.Refuse("'" + values.column().field.name + "' is not a list of objects",
                         "Write a list with a value for each object, which may be empty");
  }
  return reader.ForEachValue([&] { return ReadRow(reader, values); });
}

// Reads the value of one object.
Status ObjectJson::ReadRow(JsonReader& reader, ObjectValues& values) {
  ASSIGN_OR_RETURN(const JsonReader::Type type, reader.Peek());
  const uint64_t begin = reader.offset();
  if (type != JsonReader::Type::kList) return AtValue(reader, begin, ReadValue(reader, values));
  TRY(AtValue(reader, begin, values.BeginList()));
  const auto read_value = [&] { return ReadValue(reader, values); };
  const bool has_points = values.column().field.kind == Field::Kind::kKeypoints;
  TRY(reader.ForEachValue([&]() -> Status {
    ASSIGN_OR_RETURN(const JsonReader::Type inner, reader.Peek());
    const bool is_point = has_points && inner == JsonReader::Type::kList;
    return is_point ? reader.ForEachValue(read_value) : read_value();
  }));
  return AtValue(reader, begin, values.EndList());
}

// Reads a number, a bool or a text.
Status ObjectJson::ReadValue(JsonReader& reader, ObjectValues& values) {
  const std::string& name = values.column().field.name;
  ASSIGN_OR_RETURN(const JsonReader::Type type, reader.Peek());
  const uint64_t begin = reader.offset();
  if (type == JsonReader::Type::kBool) {
    ASSIGN_OR_RETURN(const bool value, reader.Bool(""));
    return AtValue(reader, begin, values.AddBoolean(value));
  }
  if (type == JsonReader::Type::kString) {
    TRY(reader.String("", text_));
    return AtValue(reader, begin, values.AddText(text_));
  }
  if (type == JsonReader::Type::kNumber) {
    ASSIGN_OR_RETURN(const bool is_integer, reader.IsInteger());
    if (!is_integer) {
      ASSIGN_OR_RETURN(const double value, reader.Number("a number"));
      return AtValue(reader, begin, values.AddNumber(value));
    }
    ASSIGN_OR_RETURN(const int64_t value, reader.Integer("a number"));
    return AtValue(reader, begin, values.AddInteger(value));
  }
  const char* const what = type == JsonReader::Type::kNull     ? "null"
                           : type == JsonReader::Type::kObject ? "an object"
                                                               : "lists in a list";
  return reader.Refuse("'" + name + "' has " + what + ", not a number, for an object");
}

}  // namespace stoker
