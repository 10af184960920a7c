#include "bindings/c/transform_spec.h"

#include <optional>
#include <vector>

#include "bindings/c/option_spec.h"
#include "transforms/spec/transform_table.h"

namespace stoker {

namespace {

Transform Read(JsonObject& object, size_t depth);

// Reads the transforms that one holds, whose own depth is `depth`.
void ReadHeld(JsonObject& object, std::vector<Transform>& held, size_t depth) {
  object.RequireKey("transforms");
  for (JsonObject& inner : object.Objects("transforms", kMaxTransforms)) {
    if (depth == kMaxTransformDepth) {
      return object.FailKey("transforms", "is nested more than " +
                                              std::to_string(kMaxTransformDepth) + " levels deep");
    }
    held.push_back(Read(inner, depth + 1));
    object.Fail(inner.CheckAllRead());
  }
}

// Returns the rows of the transforms that can be in a list of this depth.
std::vector<const TransformRow*> RowsOf(size_t depth) {
  std::vector<const TransformRow*> rows;
  for (const TransformRow& row : AllTransforms()) {
    if (depth == 1 || CanBeHeld(row)) rows.push_back(&row);
  }
  return rows;
}

// `depth`: 1 for a transform that no other one holds.
Transform Read(JsonObject& object, size_t depth) {
  const std::vector<const TransformRow*> rows = RowsOf(depth);
  std::vector<const char*> names;
  names.reserve(rows.size());
  for (const TransformRow* row : rows) names.push_back(row->name);
  object.RequireKey("name");
  const std::optional<size_t> index = object.Choice("name", names);
  if (!index) return {};
  Transform transform = rows[*index]->standard;
  for (const Parameter& parameter : rows[*index]->parameters) {
    for (const Option<Transform>& option : parameter.options) {
      if (option.in != nullptr) ReadOption(object, option, option.in(transform));
    }
  }
  if (std::vector<Transform>* held = HeldBy(transform)) ReadHeld(object, *held, depth);
  return transform;
}

}  // namespace

Transform ReadTransform(JsonObject& object) {
  Transform transform = Read(object, 1);
  if (const auto* erasing = std::get_if<RandomErasing>(&transform)) {
    if (erasing->noise && object.Has("value")) {
      object.FailKey("value", "is given together with noise");
    }
  }
  return transform;
}

}  // namespace stoker
