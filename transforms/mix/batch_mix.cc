#include "transforms/mix/batch_mix.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string>

#include "core/result/log.h"
#include "transforms/mix/draw_mix.h"
#include "transforms/plan/draw.h"
#include "transforms/spec/weights.h"

namespace stoker {

namespace {

// Uses its own stream of random numbers, the last one, of a batch's first row; the row's other
// streams are numbered by the index of the transform.
constexpr uint32_t kStream = 0xffff;

using Choice = std::variant<MixUp, CutMix>;

const char* NameOf(const Choice& choice) {
  return std::holds_alternative<CutMix>(choice) ? "CutMix" : "MixUp";
}

double AlphaOf(const Choice& choice) {
  return std::visit([](const auto& mix) { return mix.alpha; }, choice);
}

template <typename T>
std::string Text(T value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

Error Invalid(std::string cause) { return Error{Code::kInvalidArgument, std::move(cause)}; }

// Two independent standard normal numbers (Marsaglia, Bray: "A convenient method for generating
// normal variables", 1964); the second one is discarded.
double DrawNormal(RandomStream& random) {
  while (true) {
    const double x = random.Uniform(-1, 1), y = random.Uniform(-1, 1);
    const double s = x * x + y * y;
    if (s > 0 && s < 1) return x * std::sqrt(-2 * Log(s) / s);
  }
}

double DrawPositive(RandomStream& random) { return 1 - random.Uniform(); }  // in (0, 1]

const Choice& DrawChoice(const BatchMix& mix, RandomStream& random) {
  const double uniform = random.Uniform();  // always drawn, so that a choice of one is like that
                                            // one alone
  return mix.choices[ChooseIndex(uniform, mix.p, mix.choices.size())];
}

}  // namespace

const char* NameOf(const BatchMix& mix) { return NameOf(mix.choices[0]); }

Status CheckMix(const BatchMix& mix) {
  if (mix.choices.empty() || mix.choices.size() > kMaxMixes) {
    return Invalid("RandomChoice has " + Text(mix.choices.size()) +
                   " transforms; it must have between 1 and " + Text(kMaxMixes));
  }
  for (const Choice& choice : mix.choices) {
    const double alpha = AlphaOf(choice);
    if (alpha >= kMinAlpha && alpha <= kMaxAlpha) continue;
    return Invalid(std::string(NameOf(choice)) + ".alpha is " + Text(alpha) +
                   "; it must be between " + Text(kMinAlpha) + " and " + Text(kMaxAlpha));
  }
  if (mix.num_classes < 0 || mix.num_classes > kMaxClasses) {
    return Invalid(std::string(NameOf(mix)) + ".num_classes is " + Text(mix.num_classes) +
                   "; it must be between 1 and " + Text(kMaxClasses) +
                   ", or 0 for as many as the source has");
  }
  if (const auto wrong = CheckWeights(mix.p, mix.choices.size())) {
    return Invalid("RandomChoice." + *wrong);
  }
  return {};
}

// From Marsaglia, Tsang: "A simple method for generating gamma variables", 2000; for a small alpha
// the number itself may be below any double. A small alpha is raised by one, and the number
// multiplied by u^(1 / alpha).
double DrawLogGamma(double alpha, RandomStream& random) {
  if (alpha < 1) {
    const double raised = DrawLogGamma(alpha + 1, random);
    return raised + Log(DrawPositive(random)) / alpha;
  }
  const double d = alpha - 1.0 / 3.0, c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = DrawNormal(random), root = 1 + c * x;
    if (root <= 0) continue;
    const double v = root * root * root, log_v = Log(v);
    if (Log(DrawPositive(random)) < 0.5 * x * x + d - d * v + d * log_v) return Log(d) + log_v;
  }
}

double DrawBeta(double alpha, RandomStream& random) {
  const double a = DrawLogGamma(alpha, random), b = DrawLogGamma(alpha, random);
  return 1 / (1 + Exp(std::clamp(b - a, -700.0, 700.0)));  // a share, from logarithms
}

DrawnMix CutAround(int x, int y, double lam, ImageSize image) {
  const double half = 0.5 * std::sqrt(1 - lam);
  const int half_width = static_cast<int>(half * image.width);
  const int half_height = static_cast<int>(half * image.height);
  const int left = std::max(x - half_width, 0), right = std::min(x + half_width, image.width);
  const int top = std::max(y - half_height, 0), bottom = std::min(y + half_height, image.height);
  const double area = static_cast<double>(right - left) * (bottom - top);
  const double all = static_cast<double>(image.width) * image.height;
  return {true, 1 - area / all, {left, top, right - left, bottom - top}};
}

DrawnMix DrawMix(const BatchMix& mix, const DrawKey& first_row, ImageSize image) {
  RandomStream random(first_row, kStream);
  const Choice& choice = DrawChoice(mix, random);
  const double lam = DrawBeta(AlphaOf(choice), random);
  if (std::holds_alternative<MixUp>(choice)) return {false, lam, {}};
  const auto x = static_cast<int>(random.Below(static_cast<uint64_t>(image.width)));
  const auto y = static_cast<int>(random.Below(static_cast<uint64_t>(image.height)));
  return CutAround(x, y, lam, image);
}

}  // namespace stoker
