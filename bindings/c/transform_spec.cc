#include "bindings/c/transform_spec.h"

#include <optional>
#include <vector>

#include "bindings/c/option_spec.h"
#include "transforms/spec/transform_table.h"

namespace stoker {

Transform ReadTransform(JsonObject& object) {
  std::vector<const char*> names;
  for (const TransformRow& row : AllTransforms()) names.push_back(row.name);
  object.Required("name");
  const std::optional<size_t> index = object.Choice("name", names);
  if (!index) return {};
  const TransformRow& row = AllTransforms()[*index];
  Transform transform = row.standard;
  for (const Parameter& parameter : row.parameters) {
    for (const Option<Transform>& option : parameter.options) {
      ReadOption(object, option, option.in(transform));
    }
  }
  if (const auto* erasing = std::get_if<RandomErasing>(&transform)) {
    if (erasing->noise && object.Has("value")) {
      object.FailKey("value", "is given together with noise");
    }
  }
  return transform;
}

}  // namespace stoker
