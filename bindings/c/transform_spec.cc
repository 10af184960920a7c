#include "bindings/c/transform_spec.h"

#include <optional>
#include <span>
#include <string>
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

// `depth`: 1 for a transform that no other one holds.
Transform Read(JsonObject& object, size_t depth) {
  const std::span<const TransformRow> rows = AllTransforms();
  std::vector<const char*> names;
  names.reserve(rows.size());
  for (const TransformRow& row : rows) names.push_back(row.name);
  object.RequireKey("name");
  const std::optional<size_t> index = object.Choice("name", names);
  if (!index) return {};
  const TransformRow& row = rows[*index];
  if (depth > 1 && !CanBeHeld(row)) {
    object.FailKey("name", std::string("is \"") + row.name +
                               "\"; held transforms resize, crop, pad, flip or change pixels, or "
                               "are RandomApply, RandomChoice or RandomOrder");
    return {};
  }
  Transform transform = row.standard;
  for (const Parameter& parameter : row.parameters) {
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
