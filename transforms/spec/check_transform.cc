#include "transforms/spec/check_transform.h"

#include <array>
#include <charconv>
#include <cmath>

#include "core/image.h"

namespace stoker {

namespace {

using Check = std::optional<Refusal>;
using Range = std::array<double, 2>;

constexpr double kMostFactor = 1e6;  // of a colour
constexpr float kMostValue = 60000;  // of what erases: float16 holds 65504
constexpr int kMostTaps = 1023;
constexpr int kMostBins = 1000;
constexpr int kMostOperations = 100;

// The shortest text that reads as the same number, in no locale.
template <typename Number>
std::string Shortest(Number value) {
  std::array<char, 32> text;
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}

// The first refusal of several checks.
template <typename... Checks>
Check First(const Checks&... checks) {
  Check first;
  ((first = first ? first : checks), ...);
  return first;
}

Check CheckInteger(const char* option, int value, int low, int high, const char* unit = "") {
  if (value >= low && value <= high) return {};
  return Refusal{std::string(option) + " = " + std::to_string(value),
                 std::string("Give ") + option + " between " + std::to_string(low) + " and " +
                     std::to_string(high) + unit};
}

Check CheckSide(const char* option, int value) {
  return CheckInteger(option, value, 1, kMostSidePixels, " pixels");
}

Check CheckSize(int height, int width) {
  return First(CheckSide("height", height), CheckSide("width", width));
}

Check CheckProbability(double p) {
  if (p >= 0 && p <= 1) return {};
  return Refusal{"p = " + NumberText(p) + " is no probability", "Give p between 0 and 1"};
}

Check CheckRange(const char* option, const Range& range, double low, double high,
                 bool positive = false) {
  const bool ordered = range[0] >= low && range[0] <= range[1] && range[1] <= high;
  if (ordered && (!positive || range[1] > 0)) return {};
  return Refusal{
      std::string(option) + " = (" + NumberText(range[0]) + ", " + NumberText(range[1]) + ")",
      std::string("Give ") + option + " as (smallest, largest), both between " + NumberText(low) +
          " and " + NumberText(high)};
}

Check CheckMargins(const Margins& margins) {
  return First(CheckInteger("padding.left", margins.left, 0, kMostSidePixels, " pixels"),
               CheckInteger("padding.top", margins.top, 0, kMostSidePixels, " pixels"),
               CheckInteger("padding.right", margins.right, 0, kMostSidePixels, " pixels"),
               CheckInteger("padding.bottom", margins.bottom, 0, kMostSidePixels, " pixels"));
}

Check CheckTaps(const char* option, int taps) {
  if (taps % 2 == 0) {
    return Refusal{std::string(option) + " = " + std::to_string(taps) + " is even",
                   "Give an odd number, so that there is a middle"};
  }
  return CheckInteger(option, taps, 1, kMostTaps, " pixels");
}

template <typename Enum>
Check CheckEnum(const char* option, Enum value, int count) {
  return CheckInteger(option, static_cast<int>(value), 0, count - 1);
}

constexpr double kLeastRatio = 1.0 / kMostSidePixels;

struct Options {
  DType dtype;

  Check operator()(const Resize& t) const {
    if (t.size == 0) return CheckSize(t.height, t.width);
    if (Check c = CheckSide("size", t.size)) return c;
    if (t.height == 0 && t.width == 0) return {};
    return Refusal{"size = " + std::to_string(t.size) + " together with height = " +
                       std::to_string(t.height) + ", width = " + std::to_string(t.width),
                   "Give size (of the shorter side), or height and width"};
  }
  Check operator()(const CenterCrop& t) const { return CheckSize(t.height, t.width); }
  Check operator()(const RandomResizedCrop& t) const {
    return First(CheckSize(t.height, t.width), CheckRange("scale", t.scale, 0, 1e6, true),
                 CheckRange("ratio", t.ratio, kLeastRatio, kMostSidePixels));
  }
  Check operator()(const RandomHorizontalFlip& t) const { return CheckProbability(t.p); }
  Check operator()(const RandomVerticalFlip& t) const { return CheckProbability(t.p); }

  Check operator()(const Normalize& t) const {
    if (dtype == DType::kU8) {
      return Refusal{std::string("its values do not fit ") + NameOf(dtype),
                     "Ask for dtype float32, float16 or bfloat16, or normalise on the device"};
    }
    for (size_t c = 0; c < 3; ++c) {
      const std::string channel = std::string("[") + std::to_string(c) + "] = ";
      if (!std::isfinite(t.mean[c])) {
        return Refusal{"mean" + channel + NumberText(t.mean[c]), "Give a finite mean"};
      }
      if (!std::isnormal(t.std[c]) || t.std[c] < 0 || !std::isfinite(t.mean[c] / t.std[c]) ||
          !std::isfinite(1 / t.std[c])) {
        return Refusal{"std" + channel + NumberText(t.std[c]), "Give a positive std"};
      }
    }
    return {};
  }

  Check operator()(const Pad& t) const {
    return First(CheckMargins(t.padding), CheckEnum("padding_mode", t.padding_mode, 4));
  }
  Check operator()(const RandomCrop& t) const {
    return First(CheckSize(t.height, t.width), CheckMargins(t.padding),
                 CheckEnum("padding_mode", t.padding_mode, 4));
  }

  Check operator()(const ColorJitter& t) const {
    return First(CheckRange("brightness", t.brightness, 0, kMostFactor),
                 CheckRange("contrast", t.contrast, 0, kMostFactor),
                 CheckRange("saturation", t.saturation, 0, kMostFactor),
                 CheckRange("hue", t.hue, -0.5, 0.5));
  }
  Check operator()(const RandomGrayscale& t) const { return CheckProbability(t.p); }
  Check operator()(const GaussianBlur& t) const {
    return First(CheckTaps("kernel_height", t.kernel_height),
                 CheckTaps("kernel_width", t.kernel_width),
                 CheckRange("sigma", t.sigma, 0x1p-20, 1e6));
  }

  Check operator()(const AutoAugment& t) const {
    return First(CheckEnum("policy", t.policy, 3), CheckEnum("interpolation", t.interpolation, 2));
  }
  Check operator()(const RandAugment& t) const {
    return First(CheckEnum("interpolation", t.interpolation, 2),
                 CheckInteger("num_ops", t.num_ops, 0, kMostOperations),
                 CheckInteger("num_magnitude_bins", t.num_magnitude_bins, 2, kMostBins),
                 CheckInteger("magnitude", t.magnitude, 0, t.num_magnitude_bins - 1));
  }
  Check operator()(const TrivialAugmentWide& t) const {
    return First(CheckEnum("interpolation", t.interpolation, 2),
                 CheckInteger("num_magnitude_bins", t.num_magnitude_bins, 2, kMostBins));
  }

  Check operator()(const RandomErasing& t) const {
    return First(CheckProbability(t.p), CheckRange("scale", t.scale, 0, 1),
                 CheckRange("ratio", t.ratio, kLeastRatio, kMostSidePixels), CheckValues(t));
  }
  Check CheckValues(const RandomErasing& t) const {
    if (t.noise && dtype == DType::kU8) {
      return Refusal{"value = \"random\": normal numbers do not fit uint8",
                     "Ask for dtype float32, float16 or bfloat16, or give numbers"};
    }
    // Far from what a dtype can hold, also when it is normalised.
    const float least = dtype == DType::kU8 ? 0 : -kMostValue;
    const float most = dtype == DType::kU8 ? 255 : kMostValue;
    for (const float value : t.value) {
      if (value >= least && value <= most) continue;
      return Refusal{"value = " + NumberText(value) + " does not fit " + NameOf(dtype),
                     "Give values between " + NumberText(least) + " and " + NumberText(most)};
    }
    return {};
  }
};

}  // namespace

std::optional<Refusal> CheckTransform(const Transform& transform, DType dtype) {
  return std::visit(Options{dtype}, transform);
}

std::string NumberText(double value) { return Shortest(value); }
std::string NumberText(float value) { return Shortest(value); }

}  // namespace stoker
