#include "bindings/c/mix_spec.h"

#include <array>
#include <variant>

namespace stoker {

namespace {

std::variant<MixUp, CutMix> ReadChoice(JsonObject& object) {
  static constexpr std::array<const char*, 2> kNames = {"MixUp", "CutMix"};
  double alpha = 1;
  object.RequireKey("name");
  const std::optional<size_t> name = object.Choice("name", kNames);
  object.Number("alpha", alpha, kMinAlpha, kMaxAlpha);
  if (name == size_t{1}) return CutMix{alpha};
  return MixUp{alpha};
}

}  // namespace

std::optional<BatchMix> ReadMix(JsonObject& object) {
  const bool wanted = object.Has("mix");
  JsonObject described = object.Object("mix");
  if (!wanted) return {};
  BatchMix mix;
  described.RequireKey("choices");
  for (JsonObject& choice : described.Objects("choices", kMaxMixes)) {
    mix.choices.push_back(ReadChoice(choice));
    described.Fail(choice.CheckAllRead());
  }
  if (described.Has("p")) mix.p.resize(mix.choices.size());
  described.Numbers("p", mix.p);
  described.Integer("num_classes", mix.num_classes, 0, kMaxClasses);
  object.Fail(described.CheckAllRead());
  return mix;
}

}  // namespace stoker
