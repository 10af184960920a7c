#include "transforms/plan/explain.h"

#include <array>
#include <utility>

#include "transforms/spec/check_transform.h"

namespace stoker {

namespace {

constexpr const char* kPaddings[] = {"constant", "edge", "reflect", "symmetric"};
constexpr const char* kPolicies[] = {"imagenet", "cifar10", "svhn"};

std::string SizeText(int height, int width) {
  return std::to_string(height) + " × " + std::to_string(width);
}

std::string RangeText(const std::array<double, 2>& range) {
  return range[0] == range[1] ? NumberText(range[0])
                              : NumberText(range[0]) + " to " + NumberText(range[1]);
}

// The parameters of a transform: those that differ from what they are by default.
class Parameters {
 public:
  Parameters& Always(const std::string& text) {
    text_ += (text_.empty() ? "" : ", ") + text;
    return *this;
  }
  template <typename T>
  Parameters& Add(const char* name, const T& value, const T& standard) {
    return value == standard ? *this : Always(std::string(name) + " " + Text(value));
  }
  std::string Take() && { return std::move(text_); }

 private:
  static std::string Text(double value) { return NumberText(value); }
  static std::string Text(bool value) { return value ? "true" : "false"; }
  static std::string Text(int value) { return std::to_string(value); }
  static std::string Text(const std::array<double, 2>& range) { return RangeText(range); }
  static std::string Text(Padding padding) { return kPaddings[static_cast<int>(padding)]; }
  static std::string Text(Interpolation how) {
    return how == Interpolation::kNearest ? "nearest" : "bilinear";
  }
  static std::string Text(const Margins& m) {
    return m.left == m.top && m.left == m.right && m.left == m.bottom
               ? std::to_string(m.left)
               : List(std::array<double, 4>{1.0 * m.left, 1.0 * m.top, 1.0 * m.right,
                                            1.0 * m.bottom});
  }
  static std::string Text(const std::optional<Fill>& fill) { return Text(*fill); }
  static std::string Text(const Fill& fill) {
    return List(std::array<double, 3>{1.0 * fill[0], 1.0 * fill[1], 1.0 * fill[2]});
  }
  static std::string Text(const std::array<float, 3>& channels) { return List(channels); }
  template <typename Values>
  static std::string List(const Values& values) {
    std::string text;
    for (const auto value : values) text += (text.empty() ? "(" : ", ") + NumberText(value);
    return text + ")";
  }

  std::string text_;
};

struct ParametersOf {
  using P = Parameters;
  P operator()(const Resize& t) const {
    return P()
        .Always(t.size != 0 ? "shorter side " + std::to_string(t.size)
                            : SizeText(t.height, t.width))
        .Add("antialias", t.antialias, true);
  }
  P operator()(const CenterCrop& t) const { return P().Always(SizeText(t.height, t.width)); }
  P operator()(const RandomResizedCrop& t) const {
    const RandomResizedCrop standard;
    return P()
        .Always(SizeText(t.height, t.width))
        .Add("scale", t.scale, standard.scale)
        .Add("ratio", t.ratio, standard.ratio)
        .Add("antialias", t.antialias, true);
  }
  P operator()(const RandomHorizontalFlip& t) const { return P().Add("p", t.p, 0.5); }
  P operator()(const RandomVerticalFlip& t) const { return P().Add("p", t.p, 0.5); }
  P operator()(const Normalize& t) const {
    return P().Add("mean", t.mean, Normalize().mean).Add("std", t.std, Normalize().std);
  }
  P operator()(const Pad& t) const {
    return P()
        .Add("padding", t.padding, Margins{})
        .Add("mode", t.padding_mode, Padding::kConstant)
        .Add("fill", t.fill, Fill{});
  }
  P operator()(const RandomCrop& t) const {
    return P()
        .Always(SizeText(t.height, t.width))
        .Add("padding", t.padding, Margins{})
        .Add("pad_if_needed", t.pad_if_needed, false)
        .Add("mode", t.padding_mode, Padding::kConstant)
        .Add("fill", t.fill, Fill{});
  }
  P operator()(const ColorJitter& t) const {
    const ColorJitter standard;
    return P()
        .Add("brightness", t.brightness, standard.brightness)
        .Add("contrast", t.contrast, standard.contrast)
        .Add("saturation", t.saturation, standard.saturation)
        .Add("hue", t.hue, standard.hue);
  }
  P operator()(const RandomGrayscale& t) const { return P().Add("p", t.p, 0.1); }
  P operator()(const GaussianBlur& t) const {
    return P()
        .Always(SizeText(t.kernel_height, t.kernel_width))
        .Add("sigma", t.sigma, GaussianBlur().sigma);
  }
  P operator()(const AutoAugment& t) const {
    return Policy(P().Always(kPolicies[static_cast<int>(t.policy)]), t);
  }
  P operator()(const RandAugment& t) const {
    P text = P().Always(std::to_string(t.num_ops) + " of magnitude " + std::to_string(t.magnitude) +
                        "/" + std::to_string(t.num_magnitude_bins));
    return Policy(std::move(text), t);
  }
  P operator()(const TrivialAugmentWide& t) const {
    return Policy(P().Add("bins", t.num_magnitude_bins, 31), t);
  }
  template <typename T>
  static P Policy(P text, const T& t) {
    return text.Add("interpolation", t.interpolation, Interpolation::kNearest)
        .Add("fill", t.fill, std::optional<Fill>());
  }
  P operator()(const RandomErasing& t) const {
    const RandomErasing standard;
    P text = P().Add("p", t.p, 0.5).Add("scale", t.scale, standard.scale);
    text.Add("ratio", t.ratio, standard.ratio);
    return t.noise ? text.Always("noise") : text.Add("value", t.value, standard.value);
  }
};

// What being fused means for a transform.
struct Fused {
  std::string operator()(const Resize&) const {
    return "while rows are decoded; only what later crops keep is decoded";
  }
  std::string operator()(const RandomResizedCrop&) const {
    return "only its box is decoded, and resampled while its rows are";
  }
  std::string operator()(const CenterCrop&) const { return "nothing else is decoded"; }
  std::string operator()(const RandomCrop&) const { return "nothing else is decoded"; }
  std::string operator()(const Pad&) const { return "zeros are written where there are no pixels"; }
  std::string operator()(const RandomHorizontalFlip&) const {
    return "rows are written from right to left";
  }
  std::string operator()(const RandomVerticalFlip&) const {
    return "rows are written from bottom to top";
  }
  std::string operator()(const Normalize&) const { return "with the conversion to the row's type"; }
  template <typename T>
  std::string operator()(const T&) const {
    return "";
  }
};

ExplainedTransform ExplainOne(const Transform& transform, Place place) {
  switch (place) {
    case Place::kFused:
      return {TextOf(transform), "fused", std::visit(Fused(), transform)};
    case Place::kTile:
      return {TextOf(transform), "tile", "on the resized image, in the worker's cache"};
    case Place::kRow:
      return {TextOf(transform), "row", "a box of the finished row is overwritten"};
  }
  return {};
}

}  // namespace

std::string TextOf(const Transform& transform) {
  const std::string parameters = std::visit(ParametersOf(), transform).Take();
  return std::string(NameOf(transform)) + (parameters.empty() ? "" : "(" + parameters + ")");
}

std::string TextOf(const BatchMix& mix) {
  std::string text;
  for (const auto& choice : mix.choices) {
    const bool cut = std::holds_alternative<CutMix>(choice);
    const double alpha = std::visit([](const auto& m) { return m.alpha; }, choice);
    text += std::string(text.empty() ? "" : " or ") + (cut ? "CutMix" : "MixUp");
    if (alpha != 1) text += "(alpha " + NumberText(alpha) + ")";
  }
  return text;
}

std::vector<ExplainedTransform> Explain(const Plan& plan) {
  std::vector<ExplainedTransform> explained;
  explained.reserve(plan.transforms().size());
  for (size_t i = 0; i < plan.transforms().size(); ++i) {
    explained.push_back(ExplainOne(plan.transforms()[i], plan.places()[i]));
  }
  return explained;
}

}  // namespace stoker
