#include "transforms/augment/policy.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "transforms/augment/geometry/draw_affine.h"
#include "transforms/mix/draw_mix.h"
#include "transforms/plan/draw.h"

namespace stoker {

namespace {

// Operations in the order of the papers; only AutoAugment has Invert.
enum Operation : uint8_t {
  kIdentity,
  kShearX,
  kShearY,
  kTranslateX,
  kTranslateY,
  kRotate,
  kBrightness,
  kColor,
  kContrast,
  kSharpness,
  kPosterize,
  kSolarize,
  kAutoContrast,
  kEqualize,
  kInvert,
};
constexpr uint64_t kOperations = 14;  // without Invert

// The strongest parameters of each kind.
struct Space {
  double shear;           // columns a row
  double translate_x;     // pixels
  double translate_y;     // pixels
  double rotate;          // degrees
  double enhance;         // distance of a factor from 1
  double posterize_bits;  // bits removed
  float posterize_from = 8;
};

// The space of AutoAugment and RandAugment; translations are relative to 331 pixels.
Space SearchSpace(ImageSize size) {
  return {0.3, 150.0 / 331.0 * size.width, 150.0 / 331.0 * size.height, 30.0, 0.9, 4};
}
constexpr Space kWide = {0.99, 32.0, 32.0, 135.0, 0.99, 6};
Space MixedSpace(ImageSize size) {
  return {0.3, size.width / 3.0, size.height / 3.0, 30.0, 0.9, 4, 4};
}

// Returns the `bin`-th of `bins` even steps, in binary32 as torch.linspace computes them one at a
// time. (Its vectorized results differ in the last bit, which decides whether TrivialAugmentWide's
// middle translation is 16 or 15 pixels.)
float Magnitude(double from, double to, int bin, int bins) {
  const float first = static_cast<float>(from), last = static_cast<float>(to);
  const float step = (last - first) / static_cast<float>(bins - 1);
  if (bin < bins / 2) return first + step * static_cast<float>(bin);
  return last - step * static_cast<float>(bins - 1 - bin);
}

int PosterizeBits(const Space& space, int bin, int bins) {
  const float taken =
      static_cast<float>(bin) / static_cast<float>((bins - 1) / space.posterize_bits);
  return static_cast<int>(RoundHalfEven(space.posterize_from - taken));
}

// The parameters of an operation.
struct Strength {
  Space space;
  int bin;
  int bins;
  Interpolation interpolation;
  std::optional<Fill> fill;
};

class Steps {
 public:
  Steps(ImageSize size, RandomStream& random, std::vector<DrawnStep>& steps)
      : size_(size), random_(random), steps_(steps) {}

  void Add(Operation operation, const Strength& strength) {
    const Space& space = strength.space;
    const auto of = [&](double end) { return Signed(end, strength); };
    switch (operation) {
      case kIdentity:
        return;
      case kShearX:
        return Shear(of(space.shear), 0, strength);
      case kShearY:
        return Shear(0, of(space.shear), strength);
      case kTranslateX:
        return Move({1, 0, -std::trunc(of(space.translate_x)), 0, 1, 0}, strength);
      case kTranslateY:
        return Move({1, 0, 0, 0, 1, -std::trunc(of(space.translate_y))}, strength);
      case kRotate:
        return Rotate(of(space.rotate), strength);
      case kBrightness:
        return Enhance<AdjustBrightness>(of(space.enhance));
      case kColor:
        return Enhance<AdjustSaturation>(of(space.enhance));
      case kContrast:
        return Enhance<AdjustContrast>(of(space.enhance));
      case kSharpness:
        return Enhance<AdjustSharpness>(of(space.enhance));
      case kPosterize:
        return Push(Posterize{PosterizeBits(space, strength.bin, strength.bins)});
      case kSolarize:
        return Push(
            Solarize{static_cast<float>(255.0 * Magnitude(1, 0, strength.bin, strength.bins))});
      case kAutoContrast:
        return Push(AutoContrast{});
      case kEqualize:
        return Push(Equalize{});
      case kInvert:
        return Push(Invert{});
    }
  }

 private:
  double Signed(double end, const Strength& strength) {
    const double magnitude = Magnitude(0, end, strength.bin, strength.bins);
    return random_.Uniform() <= 0.5 ? -magnitude : magnitude;
  }

  // Shears about the top left corner.
  void Shear(double x, double y, const Strength& strength) {
    Move({1, x, x * size_.height / 2, y, 1, y * size_.width / 2}, strength);
  }

  // Rotates counterclockwise about the center.
  void Rotate(double degrees, const Strength& strength) { Move(Rotation(degrees), strength); }

  void Move(const std::array<double, 6>& matrix, const Strength& strength) {
    if (matrix == kNoMotion) return;
    Push(Affine{matrix, strength.interpolation, strength.fill.value_or(Fill{}),
                strength.fill.has_value()});
  }

  template <typename Adjust>
  void Enhance(double by) {
    if (by != 0) Push(Adjust{static_cast<decltype(Adjust::factor)>(1.0 + by)});
  }

  void Push(const Step& step) { steps_.push_back({step, 0}); }

  ImageSize size_;
  RandomStream& random_;
  std::vector<DrawnStep>& steps_;
};

// ---- AutoAugment's tables: (operation, probability, strength of 10) twice.

struct Choice {
  Operation operation;
  double probability;
  int bin;
};
using Pair = std::pair<Choice, Choice>;
using Table = std::array<Pair, 25>;
constexpr int kSearchedBins = 10;

constexpr Table kImageNet = {{
    {{kPosterize, 0.4, 8}, {kRotate, 0.6, 9}},  {{kSolarize, 0.6, 5}, {kAutoContrast, 0.6, 0}},
    {{kEqualize, 0.8, 0}, {kEqualize, 0.6, 0}}, {{kPosterize, 0.6, 7}, {kPosterize, 0.6, 6}},
    {{kEqualize, 0.4, 0}, {kSolarize, 0.2, 4}}, {{kEqualize, 0.4, 0}, {kRotate, 0.8, 8}},
    {{kSolarize, 0.6, 3}, {kEqualize, 0.6, 0}}, {{kPosterize, 0.8, 5}, {kEqualize, 1.0, 0}},
    {{kRotate, 0.2, 3}, {kSolarize, 0.6, 8}},   {{kEqualize, 0.6, 0}, {kPosterize, 0.4, 6}},
    {{kRotate, 0.8, 8}, {kColor, 0.4, 0}},      {{kRotate, 0.4, 9}, {kEqualize, 0.6, 0}},
    {{kEqualize, 0.0, 0}, {kEqualize, 0.8, 0}}, {{kInvert, 0.6, 0}, {kEqualize, 1.0, 0}},
    {{kColor, 0.6, 4}, {kContrast, 1.0, 8}},    {{kRotate, 0.8, 8}, {kColor, 1.0, 2}},
    {{kColor, 0.8, 8}, {kSolarize, 0.8, 7}},    {{kSharpness, 0.4, 7}, {kInvert, 0.6, 0}},
    {{kShearX, 0.6, 5}, {kEqualize, 1.0, 0}},   {{kColor, 0.4, 0}, {kEqualize, 0.6, 0}},
    {{kEqualize, 0.4, 0}, {kSolarize, 0.2, 4}}, {{kSolarize, 0.6, 5}, {kAutoContrast, 0.6, 0}},
    {{kInvert, 0.6, 0}, {kEqualize, 1.0, 0}},   {{kColor, 0.6, 4}, {kContrast, 1.0, 8}},
    {{kEqualize, 0.8, 0}, {kEqualize, 0.6, 0}},
}};

constexpr Table kCifar10 = {{
    {{kInvert, 0.1, 0}, {kContrast, 0.2, 6}},
    {{kRotate, 0.7, 2}, {kTranslateX, 0.3, 9}},
    {{kSharpness, 0.8, 1}, {kSharpness, 0.9, 3}},
    {{kShearY, 0.5, 8}, {kTranslateY, 0.7, 9}},
    {{kAutoContrast, 0.5, 0}, {kEqualize, 0.9, 0}},
    {{kShearY, 0.2, 7}, {kPosterize, 0.3, 7}},
    {{kColor, 0.4, 3}, {kBrightness, 0.6, 7}},
    {{kSharpness, 0.3, 9}, {kBrightness, 0.7, 9}},
    {{kEqualize, 0.6, 0}, {kEqualize, 0.5, 0}},
    {{kContrast, 0.6, 7}, {kSharpness, 0.6, 5}},
    {{kColor, 0.7, 7}, {kTranslateX, 0.5, 8}},
    {{kEqualize, 0.3, 0}, {kAutoContrast, 0.4, 0}},
    {{kTranslateY, 0.4, 3}, {kSharpness, 0.2, 6}},
    {{kBrightness, 0.9, 6}, {kColor, 0.2, 8}},
    {{kSolarize, 0.5, 2}, {kInvert, 0.0, 0}},
    {{kEqualize, 0.2, 0}, {kAutoContrast, 0.6, 0}},
    {{kEqualize, 0.2, 0}, {kEqualize, 0.6, 0}},
    {{kColor, 0.9, 9}, {kEqualize, 0.6, 0}},
    {{kAutoContrast, 0.8, 0}, {kSolarize, 0.2, 8}},
    {{kBrightness, 0.1, 3}, {kColor, 0.7, 0}},
    {{kSolarize, 0.4, 5}, {kAutoContrast, 0.9, 0}},
    {{kTranslateY, 0.9, 9}, {kTranslateY, 0.7, 9}},
    {{kAutoContrast, 0.9, 0}, {kSolarize, 0.8, 3}},
    {{kEqualize, 0.8, 0}, {kInvert, 0.1, 0}},
    {{kTranslateY, 0.7, 9}, {kAutoContrast, 0.9, 0}},
}};

constexpr Table kSvhn = {{
    {{kShearX, 0.9, 4}, {kInvert, 0.2, 0}},       {{kShearY, 0.9, 8}, {kInvert, 0.7, 0}},
    {{kEqualize, 0.6, 0}, {kSolarize, 0.6, 6}},   {{kInvert, 0.9, 0}, {kEqualize, 0.6, 0}},
    {{kEqualize, 0.6, 0}, {kRotate, 0.9, 3}},     {{kShearX, 0.9, 4}, {kAutoContrast, 0.8, 0}},
    {{kShearY, 0.9, 8}, {kInvert, 0.4, 0}},       {{kShearY, 0.9, 5}, {kSolarize, 0.2, 6}},
    {{kInvert, 0.9, 0}, {kAutoContrast, 0.8, 0}}, {{kEqualize, 0.6, 0}, {kRotate, 0.9, 3}},
    {{kShearX, 0.9, 4}, {kSolarize, 0.3, 3}},     {{kShearY, 0.8, 8}, {kInvert, 0.7, 0}},
    {{kEqualize, 0.9, 0}, {kTranslateY, 0.6, 6}}, {{kInvert, 0.9, 0}, {kEqualize, 0.6, 0}},
    {{kContrast, 0.3, 3}, {kRotate, 0.8, 4}},     {{kInvert, 0.8, 0}, {kTranslateY, 0.0, 2}},
    {{kShearY, 0.7, 6}, {kSolarize, 0.4, 8}},     {{kInvert, 0.6, 0}, {kRotate, 0.8, 4}},
    {{kShearY, 0.3, 7}, {kTranslateX, 0.9, 3}},   {{kShearX, 0.1, 6}, {kInvert, 0.6, 0}},
    {{kSolarize, 0.7, 2}, {kTranslateY, 0.6, 7}}, {{kShearY, 0.8, 4}, {kInvert, 0.8, 0}},
    {{kShearX, 0.7, 9}, {kTranslateY, 0.8, 3}},   {{kShearY, 0.8, 5}, {kAutoContrast, 0.7, 0}},
    {{kShearX, 0.7, 2}, {kInvert, 0.1, 0}},
}};

const Table& TableOf(AutoAugment::Policy policy) {
  switch (policy) {
    case AutoAugment::Policy::kCifar10:
      return kCifar10;
    case AutoAugment::Policy::kSvhn:
      return kSvhn;
    default:
      return kImageNet;
  }
}

// ---- AugMix's operations: those that its paper tests, and four more.

constexpr std::array kMixed{kShearX,    kShearY,   kTranslateX,   kTranslateY, kRotate,
                            kPosterize, kSolarize, kAutoContrast, kEqualize,   kBrightness,
                            kContrast,  kColor,    kSharpness};
constexpr size_t kTested = 9;

// Returns shares of 1 that are Dirichlet(alpha, …, alpha) distributed.
std::vector<double> DrawShares(double alpha, int count, RandomStream& random) {
  std::vector<double> shares(static_cast<size_t>(count));
  for (double& share : shares) share = DrawLogGamma(alpha, random);
  const double most = *std::ranges::max_element(shares);
  double sum = 0;
  for (double& share : shares) sum += share = Exp(std::max(share - most, -700.0));
  for (double& share : shares) share /= sum;
  return shares;
}

}  // namespace

void DrawPolicy(const AutoAugment& policy, ImageSize size, RandomStream& random,
                std::vector<DrawnStep>& steps) {
  const Table& table = TableOf(policy.policy);
  const auto& [first, second] = table[random.Below(table.size())];
  for (const Choice& choice : {first, second}) {
    if (random.Uniform() > choice.probability) continue;
    Steps(size, random, steps)
        .Add(choice.operation,
             {SearchSpace(size), choice.bin, kSearchedBins, policy.interpolation, policy.fill});
  }
}

void DrawPolicy(const RandAugment& policy, ImageSize size, RandomStream& random,
                std::vector<DrawnStep>& steps) {
  for (int i = 0; i < policy.num_ops; ++i) {
    Steps(size, random, steps)
        .Add(static_cast<Operation>(random.Below(kOperations)),
             {SearchSpace(size), policy.magnitude, policy.num_magnitude_bins, policy.interpolation,
              policy.fill});
  }
}

void DrawPolicy(const TrivialAugmentWide& policy, ImageSize size, RandomStream& random,
                std::vector<DrawnStep>& steps) {
  const auto operation = static_cast<Operation>(random.Below(kOperations));
  const auto bins = static_cast<uint64_t>(policy.num_magnitude_bins);
  const int bin = static_cast<int>(random.Below(bins));
  Steps(size, random, steps)
      .Add(operation, {kWide, bin, policy.num_magnitude_bins, policy.interpolation, policy.fill});
}

void DrawPolicy(const AugMix& policy, ImageSize size, RandomStream& random,
                std::vector<DrawnStep>& steps) {
  const double of_image = DrawBeta(policy.alpha, random);
  Mix mix;
  mix.weight = static_cast<float>(of_image);
  std::vector<DrawnStep> drawn;
  for (const double share : DrawShares(policy.alpha, policy.mixture_width, random)) {
    Mix::Chain& chain = mix.chains.emplace_back();
    chain.weight = static_cast<float>(share * (1 - of_image));
    const int depth =
        policy.chain_depth > 0 ? policy.chain_depth : 1 + static_cast<int>(random.Below(3));
    drawn.clear();
    for (int i = 0; i < depth; ++i) {
      const Operation operation = kMixed[random.Below(policy.all_ops ? kMixed.size() : kTested)];
      const auto bin = static_cast<int>(random.Below(static_cast<uint64_t>(policy.severity)));
      Steps(size, random, drawn)
          .Add(operation,
               {MixedSpace(size), bin, kSearchedBins, policy.interpolation, policy.fill});
    }
    for (DrawnStep& step : drawn) chain.steps.push_back({std::move(step.step)});
  }
  steps.push_back({std::move(mix), 0});
}

}  // namespace stoker
