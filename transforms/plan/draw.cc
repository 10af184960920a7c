#include "transforms/plan/draw.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>

#include "core/result/log.h"
#include "transforms/plan/moved_objects.h"

namespace stoker {

namespace {

constexpr double kLog2E = 0x1.71547652b82fep+0;

// π, split in the same way; the upper part has 26 trailing zero bits.
constexpr double kPiHigh = 0x1.921fb5p+1;
constexpr double kPiLow = 0x1.110b4611a6263p-25;

int Middle(int crop, int image) {
  if (crop > image) return -((crop - image) / 2);
  return static_cast<int>(RoundHalfEven((image - crop) / 2.0));
}

// Returns the largest central box whose ratio is within the range.
Rect CentralBox(const RandomResizedCrop& crop, ImageSize image) {
  const double in_ratio = static_cast<double>(image.width) / image.height;
  const double low = std::min(crop.ratio[0], crop.ratio[1]);
  const double high = std::max(crop.ratio[0], crop.ratio[1]);
  double width = image.width, height = image.height;
  if (in_ratio < low) {
    height = RoundHalfEven(width / low);
  } else if (in_ratio > high) {
    width = RoundHalfEven(height * high);
  }
  Rect box;  // at least one pixel; torchvision fails on an extreme ratio
  box.width = static_cast<int>(std::clamp(width, 1.0, static_cast<double>(image.width)));
  box.height = static_cast<int>(std::clamp(height, 1.0, static_cast<double>(image.height)));
  box.x = (image.width - box.width) / 2;
  box.y = (image.height - box.height) / 2;
  return box;
}

enum class Ratio { kWidthByHeight, kHeightByWidth };

// Makes up to ten attempts of two uniform numbers (area, ratio), then draws two integers for the
// attempt that fits (row, column).
template <typename Fits>
std::optional<Rect> DrawBox(Ratio meaning, const std::array<double, 2>& scale,
                            const std::array<double, 2>& ratios, ImageSize image,
                            RandomStream& random, const Fits& fits) {
  const double area = static_cast<double>(image.width) * image.height;
  const double low = Log(ratios[0]), high = Log(ratios[1]);
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double target = area * random.Uniform(scale[0], scale[1]);
    const double ratio = Exp(random.Uniform(low, high));
    const double first = RoundHalfEven(std::sqrt(target * ratio));
    const double second = RoundHalfEven(std::sqrt(target / ratio));
    const bool wide = meaning == Ratio::kWidthByHeight;
    const double width = wide ? first : second, height = wide ? second : first;
    if (!fits(width, height)) continue;
    const int w = static_cast<int>(width), h = static_cast<int>(height);
    const int y = static_cast<int>(random.Below(static_cast<uint64_t>(image.height - h) + 1));
    const int x = static_cast<int>(random.Below(static_cast<uint64_t>(image.width - w) + 1));
    return Rect{x, y, w, h};
  }
  return std::nullopt;
}

int DrawnSide(double side) { return static_cast<int>(std::clamp<double>(side, 1, kMaxDrawnSide)); }

// Returns the intersection of the box and the part, divided by their union.
double OverlapOf(const Box& box, const Rect& part) {
  const double right = part.x + part.width, bottom = part.y + part.height;
  const double width = std::min(box.right, right) - std::max<double>(box.left, part.x);
  const double height = std::min(box.bottom, bottom) - std::max<double>(box.top, part.y);
  const double shared = std::max(width, 0.0) * std::max(height, 0.0);
  const double of_box = (box.right - box.left) * (box.bottom - box.top);
  return shared / (of_box + static_cast<double>(part.width) * part.height - shared);
}

// Draws a part; nullopt if its ratio is wrong, or it is empty.
std::optional<Rect> DrawPart(const RandomIoUCrop& crop, ImageSize image, RandomStream& random) {
  const auto share_of = [&](int side) {
    return static_cast<int>(side * random.Uniform(crop.min_scale, crop.max_scale));
  };
  const int width = share_of(image.width), height = share_of(image.height);
  if (width == 0 || height == 0) return std::nullopt;
  const double ratio = static_cast<double>(width) / height;
  if (ratio < crop.min_aspect_ratio || ratio > crop.max_aspect_ratio) return std::nullopt;
  const int x = static_cast<int>((image.width - width) * random.Uniform());
  const int y = static_cast<int>((image.height - height) * random.Uniform());
  return Rect{x, y, width, height};
}

}  // namespace

double Exp(double x) {
  // x = k ln 2 + r with |r| <= ln 2 / 2, then the Taylor series of e^r; its first term left out is
  // r^14 / 14!, below 5e-18.
  const double k = std::floor(x * kLog2E + 0.5);
  const double r = (x - k * kLn2High) - k * kLn2Low;
  double sum = 1.0;
  for (int n = 13; n >= 1; --n) sum = 1.0 + sum * r / n;
  return std::ldexp(sum, static_cast<int>(k));
}

double Sin(double x) {
  // x = k π + r with |r| <= π / 2, then the Taylor series; its first term left out is r^23 / 23!,
  // below 2e-18.
  const double k = std::floor(x / kPi + 0.5);
  const double r = (x - k * kPiHigh) - k * kPiLow, square = r * r;
  double sum = 0.0;
  for (int n = 21; n >= 3; n -= 2) sum = (1.0 + sum) * -square / (n * (n - 1));
  return (std::fmod(k, 2.0) == 0.0 ? 1.0 : -1.0) * (r + r * sum);
}

double RoundHalfEven(double value) {
  const double below = std::floor(value), part = value - below;
  if (part < 0.5) return below;
  if (part > 0.5) return below + 1;
  return std::fmod(below, 2.0) == 0.0 ? below : below + 1;
}

ImageSize SizeAfter(const Resize& resize, ImageSize image) {
  if (resize.height != 0) return {resize.width, resize.height};
  int64_t shorter = std::min(image.width, image.height);
  int64_t longer = std::max(image.width, image.height);
  if (resize.size != 0) {
    longer = resize.size * longer / shorter;
    shorter = resize.size;
  }
  if (resize.max_size != 0 && (resize.size == 0 || longer > resize.max_size)) {
    shorter = std::max<int64_t>(1, resize.max_size * shorter / longer);
    longer = resize.max_size;
  }
  const int least = static_cast<int>(shorter);
  const int most = static_cast<int>(std::min<int64_t>(longer, kMaxDrawnSide));
  return image.width <= image.height ? ImageSize{least, most} : ImageSize{most, least};
}

ImageSize DrawShortestSize(const RandomShortestSize& resize, ImageSize image,
                           RandomStream& random) {
  const double least = resize.min_size[random.Below(resize.min_size.size())];
  double times = least / std::min(image.width, image.height);
  if (resize.max_size != 0) {
    const double most = resize.max_size;
    times = std::min(times, most / std::max(image.width, image.height));
  }
  return {DrawnSide(image.width * times), DrawnSide(image.height * times)};
}

ImageSize DrawScaledSize(const ScaleJitter& jitter, ImageSize image, RandomStream& random) {
  const auto scale =
      static_cast<float>(random.Uniform(jitter.scale_range[0], jitter.scale_range[1]));
  const double fits = std::min(static_cast<double>(jitter.width) / image.width,
                               static_cast<double>(jitter.height) / image.height);
  const float times = static_cast<float>(fits) * scale;
  return {DrawnSide(static_cast<float>(image.width) * times),
          DrawnSide(static_cast<float>(image.height) * times)};
}

Rect CenterBox(ImageSize crop, ImageSize image) {
  return {Middle(crop.width, image.width), Middle(crop.height, image.height), crop.width,
          crop.height};
}

bool Contains(const Rect& outer, const Rect& inner) {
  return inner.x >= outer.x && inner.y >= outer.y &&
         inner.x + inner.width <= outer.x + outer.width &&
         inner.y + inner.height <= outer.y + outer.height;
}

Rect DrawResizedBox(const RandomResizedCrop& crop, ImageSize image, RandomStream& random) {
  const auto fits = [image](double width, double height) {
    return width >= 1 && width <= image.width && height >= 1 && height <= image.height;
  };
  const std::optional<Rect> box =
      DrawBox(Ratio::kWidthByHeight, crop.scale, crop.ratio, image, random, fits);
  return box ? *box : CentralBox(crop, image);
}

Rect DrawErasedBox(const RandomErasing& erasing, ImageSize image, RandomStream& random) {
  const auto fits = [image](double width, double height) {
    return height < image.height && width < image.width;
  };
  return DrawBox(Ratio::kHeightByWidth, erasing.scale, erasing.ratio, image, random, fits)
      .value_or(Rect());
}

bool HasCenterIn(const Rect& part, const Box& box) {
  const double x = 0.5 * (box.left + box.right), y = 0.5 * (box.top + box.bottom);
  return part.x < x && x < part.x + part.width && part.y < y && y < part.y + part.height;
}

std::optional<Rect> DrawIoUCrop(const RandomIoUCrop& crop, ImageSize image,
                                std::span<const Box> boxes, RandomStream& random) {
  constexpr int kRounds = 20;  // torchvision does not limit them
  static constexpr std::array kOverlaps{0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0};
  const std::span<const double> overlaps =
      crop.sampler_options.empty() ? std::span(kOverlaps) : std::span(crop.sampler_options);
  for (int round = 0; round < kRounds && !boxes.empty(); ++round) {
    const double least = overlaps[random.Below(overlaps.size())];
    if (least >= 1) return std::nullopt;
    for (int trial = 0; trial < crop.trials; ++trial) {
      const std::optional<Rect> part = DrawPart(crop, image, random);
      const auto fits = [&](const Box& box) {
        return HasCenterIn(*part, box) && OverlapOf(box, *part) >= least;
      };
      if (part && std::ranges::any_of(boxes, fits)) return part;
    }
  }
  return std::nullopt;
}

std::array<float, 3> Normalized(const std::array<float, 3>& value, const Normalize& by) {
  std::array<float, 3> normalized;
  for (size_t c = 0; c < 3; ++c) {
    normalized[c] = (value[c] - ChannelOf(by.mean, c)) / ChannelOf(by.std, c);
  }
  return normalized;
}

}  // namespace stoker
