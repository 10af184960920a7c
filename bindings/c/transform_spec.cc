#include "bindings/c/transform_spec.h"

#include <optional>
#include <vector>

#include "bindings/c/option_spec.h"
#include "transforms/spec/transform_table.h"

namespace stoker {

namespace {

// Reads a transform of one of these kinds.
Transform Read(JsonObject& object, const std::vector<const TransformRow*>& rows) {
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
  return transform;
}

void ReadTransforms(JsonObject& object, RandomApply& apply) {
  std::vector<const TransformRow*> rows;
  for (const TransformRow& row : AllTransforms()) {
    if (AsPixelTransform(row.standard)) rows.push_back(&row);
  }
  object.RequireKey("transforms");
  for (JsonObject& inner : object.Objects("transforms", kMaxTransforms)) {
    const std::optional<PixelTransform> read = AsPixelTransform(Read(inner, rows));
    if (read) apply.transforms.push_back(*read);
    object.Fail(inner.CheckAllRead());
  }
}

}  // namespace

Transform ReadTransform(JsonObject& object) {
  std::vector<const TransformRow*> rows;
  for (const TransformRow& row : AllTransforms()) rows.push_back(&row);
  Transform transform = Read(object, rows);
  if (auto* apply = std::get_if<RandomApply>(&transform)) ReadTransforms(object, *apply);
  if (const auto* erasing = std::get_if<RandomErasing>(&transform)) {
    if (erasing->noise && object.Has("value")) {
      object.FailKey("value", "is given together with noise");
    }
  }
  return transform;
}

}  // namespace stoker
