#include "bindings/c/transform_spec.h"

#include <array>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <optional>

#include "core/image.h"

namespace stoker {

namespace {

template <typename T>
void ReadSize(JsonObject& object, T& transform) {
  object.Required("height");
  object.Required("width");
  object.Integer("height", transform.height, 1, kMostSidePixels);
  object.Integer("width", transform.width, 1, kMostSidePixels);
}

void ReadChannels(JsonObject& object, const char* key, std::array<float, 3>& channels) {
  std::array<double, 3> read{channels[0], channels[1], channels[2]};
  object.Numbers(key, read);
  for (size_t c = 0; c < channels.size(); ++c) {
    if (std::fabs(read[c]) > FLT_MAX) return object.FailKey(key, "does not fit a float32");
    channels[c] = static_cast<float>(read[c]);
  }
}

void ReadProbability(JsonObject& object, double& p) {
  object.Number("p", p);
  if (!(p >= 0 && p <= 1)) object.FailKey("p", "must be a number from 0 to 1");
}

void ReadFill(JsonObject& object, Fill& fill) {
  std::array<int, 3> read{fill[0], fill[1], fill[2]};
  object.Integers("fill", read, 0, 255);
  for (size_t c = 0; c < fill.size(); ++c) fill[c] = static_cast<uint8_t>(read[c]);
}

void ReadPadding(JsonObject& object, Margins& padding, Padding& mode, Fill& fill) {
  static constexpr std::array<const char*, 4> kModes = {"constant", "edge", "reflect", "symmetric"};
  std::array<int, 4> sides{padding.left, padding.top, padding.right, padding.bottom};
  object.Integers("padding", sides, 0, kMostSidePixels);
  padding = {sides[0], sides[1], sides[2], sides[3]};
  if (const auto place = object.Choice("padding_mode", kModes)) mode = static_cast<Padding>(*place);
  ReadFill(object, fill);
}

template <typename T>
void ReadPolicy(JsonObject& object, T& policy) {
  static constexpr std::array<const char*, 2> kNames = {"nearest", "bilinear"};
  if (const auto place = object.Choice("interpolation", kNames)) {
    policy.interpolation = static_cast<Interpolation>(*place);
  }
  if (!object.Has("fill")) return;
  policy.fill = Fill{};
  ReadFill(object, *policy.fill);
}

// ---- One for each transform.

void Read(JsonObject& object, Resize& t) {
  object.Integer("size", t.size, 0, kMostSidePixels);
  object.Integer("height", t.height, 0, kMostSidePixels);
  object.Integer("width", t.width, 0, kMostSidePixels);
  object.Boolean("antialias", t.antialias);
}

void Read(JsonObject& object, CenterCrop& t) { ReadSize(object, t); }

void Read(JsonObject& object, RandomResizedCrop& t) {
  ReadSize(object, t);
  object.Numbers("scale", t.scale);
  object.Numbers("ratio", t.ratio);
  object.Boolean("antialias", t.antialias);
}

void Read(JsonObject& object, RandomHorizontalFlip& t) { ReadProbability(object, t.p); }
void Read(JsonObject& object, RandomVerticalFlip& t) { ReadProbability(object, t.p); }

void Read(JsonObject& object, Normalize& t) {
  ReadChannels(object, "mean", t.mean);
  ReadChannels(object, "std", t.std);
}

void Read(JsonObject& object, Pad& t) {
  object.Required("padding");
  ReadPadding(object, t.padding, t.padding_mode, t.fill);
}

void Read(JsonObject& object, RandomCrop& t) {
  ReadSize(object, t);
  ReadPadding(object, t.padding, t.padding_mode, t.fill);
  object.Boolean("pad_if_needed", t.pad_if_needed);
}

void Read(JsonObject& object, ColorJitter& t) {
  object.Numbers("brightness", t.brightness);
  object.Numbers("contrast", t.contrast);
  object.Numbers("saturation", t.saturation);
  object.Numbers("hue", t.hue);
}

void Read(JsonObject& object, RandomGrayscale& t) { ReadProbability(object, t.p); }

void Read(JsonObject& object, GaussianBlur& t) {
  object.Required("kernel_height");
  object.Required("kernel_width");
  object.Integer("kernel_height", t.kernel_height, 1, kMostSidePixels);
  object.Integer("kernel_width", t.kernel_width, 1, kMostSidePixels);
  object.Numbers("sigma", t.sigma);
}

void Read(JsonObject& object, AutoAugment& t) {
  static constexpr std::array<const char*, 3> kPolicies = {"imagenet", "cifar10", "svhn"};
  if (const auto place = object.Choice("policy", kPolicies)) {
    t.policy = static_cast<AutoAugment::Policy>(*place);
  }
  ReadPolicy(object, t);
}

void Read(JsonObject& object, RandAugment& t) {
  object.Integer("num_ops", t.num_ops, 0, INT32_MAX);
  object.Integer("magnitude", t.magnitude, 0, INT32_MAX);
  object.Integer("num_magnitude_bins", t.num_magnitude_bins, 0, INT32_MAX);
  ReadPolicy(object, t);
}

void Read(JsonObject& object, TrivialAugmentWide& t) {
  object.Integer("num_magnitude_bins", t.num_magnitude_bins, 0, INT32_MAX);
  ReadPolicy(object, t);
}

void Read(JsonObject& object, RandomErasing& t) {
  ReadProbability(object, t.p);
  object.Numbers("scale", t.scale);
  object.Numbers("ratio", t.ratio);
  ReadChannels(object, "value", t.value);
  object.Boolean("noise", t.noise);
  if (t.noise && object.Has("value")) object.FailKey("value", "is given together with noise");
}

// A transform of the place-th type of the variant.
template <size_t... places>
Transform ReadOfType(JsonObject& object, size_t place, std::index_sequence<places...>) {
  Transform transform;
  const auto read = [&]<typename T>(T t) {
    Read(object, t);
    transform = t;
  };
  ((place == places ? read(std::variant_alternative_t<places, Transform>()) : void()), ...);
  return transform;
}

template <size_t... places>
std::array<const char*, sizeof...(places)> NamesOf(std::index_sequence<places...>) {
  return {NameOf(std::variant_alternative_t<places, Transform>())...};
}

}  // namespace

Transform ReadTransform(JsonObject& object) {
  using Places = std::make_index_sequence<std::variant_size_v<Transform>>;
  static const auto names = NamesOf(Places());
  object.Required("name");
  const std::optional<size_t> name = object.Choice("name", names);
  return name ? ReadOfType(object, *name, Places()) : Transform();
}

}  // namespace stoker
