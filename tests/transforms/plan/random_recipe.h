// Random lists of transforms that have every one of them.
#pragma once

#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "core/batch/dtype.h"
#include "tests/testing/random.h"
#include "tests/transforms/plan/random_options.h"
#include "transforms/plan/objects.h"
#include "transforms/spec/interpolation.h"
#include "transforms/spec/transform.h"

namespace stoker::testing {

// The fields that the list of a plan needs.
inline std::vector<ObjectField> FieldsFor(const std::vector<Transform>& list) {
  for (const Transform& transform : list) {
    if (std::holds_alternative<RandomIoUCrop>(transform) ||
        std::holds_alternative<SanitizeBoundingBoxes>(transform) ||
        std::holds_alternative<ClampBoundingBoxes>(transform) ||
        std::holds_alternative<ConvertBoundingBoxFormat>(transform)) {
      return {{.kind = ObjectField::Kind::kBoxes, .bytes = 16}};
    }
  }
  return {};
}

// Padding in several ways, alone and held by others, with crops and resizes. Many lists do not
// compile.
inline std::vector<Transform> RandomPaddings(Random& random, int depth = 0) {
  constexpr Fill kFills[] = {{}, {255, 255, 255}, {9, 8, 7}};
  std::vector<Transform> list;
  for (int n = random.Between(1, depth == 0 ? 6 : 2); n > 0; --n) {
    const Fill fill = kFills[random.Between(0, 2)];
    const auto side = [&] { return random.Between(8, 40); };
    const int kind = random.Between(0, depth < 2 ? 10 : 6);
    if (kind < 2) list.emplace_back(Pad{NextMargins(random, 9), fill});
    if (kind == 2 || kind == 3) list.emplace_back(RandomZoomOut{fill, {1, 2}, 0.8});
    if (kind == 4) list.emplace_back(RandomCrop{side(), side(), {}, true, fill});
    if (kind == 5) list.emplace_back(Resize{.height = side(), .width = side()});
    if (kind == 6) list.emplace_back(CenterCrop{side(), side()});
    if (kind == 7 || kind == 8) {
      list.emplace_back(RandomApply{RandomPaddings(random, depth + 1), random.OneIn(2) ? 1 : 0.5});
    }
    if (kind > 8) {
      RandomChoice choice;
      for (int i = 0; i < 2; ++i) {
        choice.transforms.emplace_back(RandomApply{RandomPaddings(random, depth + 1), 1});
      }
      list.emplace_back(std::move(choice));
    }
  }
  if (depth > 0) return list;
  if (random.OneIn(3)) list.emplace_back(Resize{.height = 20, .width = 30});
  if (random.OneIn(3)) list.emplace_back(CenterCrop{20, 16});
  if (random.OneIn(4)) list.emplace_back(PadTo{400, 400});
  return list;
}

// Gives a resize a random filter, and a library that has it.
template <typename T>
void SetFilter(Random& random, T& resize) {
  resize.interpolation = kInterpolations[random.Between(0, 4)];
  resize.antialias = random.OneIn(2);
  if (!resize.antialias) return;
  const bool in_torchvision = resize.interpolation != Interpolation::kNearest &&
                              resize.interpolation != Interpolation::kBox;
  resize.resampler = static_cast<ResampledAs>(random.Between(0, in_torchvision ? 2 : 1));
}

// Images of up to 90 pixels a side fit in it.
inline std::vector<Transform> RandomRecipe(Random& random, DType dtype) {
  std::vector<Transform> list;
  const auto side = [&] { return random.Between(4, 60); };
  if (random.OneIn(3)) list.emplace_back(RandomVerticalFlip{});
  const Fill fill = random.OneIn(2) ? NextFill(random) : Fill{};
  if (random.OneIn(3)) list.emplace_back(Pad{NextMargins(random, 5), fill});
  const bool pads = random.OneIn(3);  // images keep their sizes
  const bool has_boxes = random.OneIn(2);
  if (random.OneIn(4)) list.emplace_back(RandomZoomOut{fill, {1, 2}});
  if (has_boxes && random.OneIn(2)) list.emplace_back(RandomIoUCrop{});
  if (random.OneIn(4)) {
    const RandomChoice resized{
        {RandomShortestSize{{side(), side()}, 90}, Resize{.height = side(), .width = side()}}};
    list.emplace_back(RandomApply{{resized, RandomHorizontalFlip{}, RandomSizeCrop{4, side()}}});
  } else if (random.OneIn(6)) {
    list.emplace_back(RandomSizeCrop{3, side(), /*square=*/true});
  }
  if (!pads) {
    RandomResizedCrop crop{side(), side(), {0.08, 1}, {0.75, 4.0 / 3}};
    SetFilter(random, crop);
    list.emplace_back(crop);
  } else if (random.OneIn(2)) {
    const int size = random.OneIn(3) ? 0 : side();
    const int most = size + random.Between(1, 30);
    const auto add = [&](auto resize) {
      SetFilter(random, resize);
      list.emplace_back(resize);
    };
    if (random.OneIn(3)) {
      add(RandomShortestSize{{size + 1, side()}, most});
    } else if (random.OneIn(3)) {
      add(ScaleJitter{side(), side(), {0.1, 1.5}});
    } else {
      add(Resize{.size = size, .max_size = most});
    }
  }
  for (int n = random.Between(0, 4); n > 0; --n) {
    const auto interpolation = random.OneIn(2) ? Interpolation::kNearest : Interpolation::kBilinear;
    switch (random.Between(0, 25)) {
      case 0:
        list.emplace_back(ColorJitter{{0.5, 1.5}, {0.5, 1.5}, {0, 2}, {-0.5, 0.5}, 0.8});
        break;
      case 8:
        list.emplace_back(RandomSolarize{1.0 * random.Between(0, 255), 0.7});
        break;
      case 9: {
        RandomApply apply{{RandomSolarize{128, 1}, RandomGrayscale{0.5}}, 0.7};
        if (!pads) apply.transforms.emplace_back(GaussianBlur{5, 3, {0.1, 2}, 0.5});
        apply.transforms.emplace_back(TrivialAugmentWide{31, interpolation, MaybeFill(random)});
        list.emplace_back(std::move(apply));
        break;
      }
      case 10:
        list.emplace_back(RandomAffine{{-180, 180},
                                       0.3,
                                       0.2,
                                       {0.5, 2},
                                       {-30, 30},
                                       {-20, 0},
                                       interpolation,
                                       MaybeFill(random),
                                       random.OneIn(2) ? std::optional<double>(7.5) : std::nullopt,
                                       {},
                                       NextPaddingOfAffine(random)});
        break;
      case 11: {
        const RandomRotation rotation{.degrees = {-30, 30}, .interpolation = interpolation};
        list.emplace_back(RandomApply{{rotation}, 0.7});
        break;
      }
      case 12: {
        RandomZoom zoom{{-0.9, 1}, {}, NextPaddingOfAffine(random), interpolation};
        if (random.OneIn(2)) zoom.width_factor = {-0.2, 0.2};
        list.emplace_back(zoom);
        list.emplace_back(RandomTranslation{
            {-1, 1}, {-0.2, 0.3}, NextPaddingOfAffine(random), interpolation, NextFill(random)});
        list.emplace_back(
            RandomShear{{0, 0.5}, {-0.2, 0}, interpolation, NextPaddingOfAffine(random)});
        break;
      }
      case 14: {
        const RandomChoice flips{{RandomHorizontalFlip{1}, RandomVerticalFlip{1}}, {1, 3}};
        list.emplace_back(RandomOrder{{flips, RandomApply{{RandomSolarize{99, 1}, flips}, 0.5},
                                       RandomRotation{.degrees = {-9, 9}}}});
        list.emplace_back(RandomChoice{{RandAugment{2, 9, 31, interpolation}, flips,
                                        RandomOrder{{RandomGrayscale{1}, RandomShear{{0, 0.5}}}}},
                                       {}});
        break;
      }
      case 15:
        list.emplace_back(RandomChoice{{RandomVerticalFlip{1}, RandomHorizontalFlip{0.5}}, {}});
        break;
      case 16:
        list.emplace_back(RandomInvert{});
        break;
      case 17:
        list.emplace_back(RandomPosterize{random.Between(0, 8)});
        break;
      case 18:
        list.emplace_back(RandomAdjustSharpness{0.5 * random.Between(0, 6)});
        break;
      case 19:
        list.emplace_back(RandomAutocontrast{});
        break;
      case 20:
        list.emplace_back(RandomEqualize{});
        break;
      case 21:
        list.emplace_back(RandomPhotometricDistort{});
        break;
      case 24:
        list.emplace_back(AugMix{.severity = random.Between(1, 10),
                                 .mixture_width = random.Between(1, 4),
                                 .chain_depth = random.Between(-1, 3),
                                 .alpha = random.OneIn(2) ? 1 : 1e-3,
                                 .all_ops = random.OneIn(2),
                                 .interpolation = interpolation,
                                 .fill = MaybeFill(random)});
        break;
      case 25:
        list.emplace_back(ElasticTransform{10.0 * random.Between(0, 40), 0.5 * random.Between(0, 9),
                                           interpolation, MaybeFill(random)});
        break;
      case 23:
        list.emplace_back(RandomHSV{{-0.5, 0.5}, {0, 3}, {0, 2}});
        break;
      case 22:
        list.emplace_back(
            RandomPerspective{0.25 * random.Between(0, 4), 0.8, interpolation, MaybeFill(random)});
        break;
      case 1:
        list.emplace_back(RandomGrayscale{0.5});
        break;
      case 2:
        if (pads) break;  // some images are too small
        list.emplace_back(GaussianBlur{3, random.OneIn(2) ? 5 : 1});
        break;
      case 3:
        list.emplace_back(TrivialAugmentWide{31, interpolation, MaybeFill(random)});
        break;
      case 4:
        list.emplace_back(RandAugment{2, 9, 31, interpolation, MaybeFill(random)});
        break;
      case 5:
        list.emplace_back(AutoAugment{static_cast<AutoAugment::Policy>(random.Between(0, 2)),
                                      interpolation, MaybeFill(random)});
        break;
      case 6:
        if (pads) break;  // the images before it are not bounded
        if (random.OneIn(3)) {
          list.emplace_back(CenterCrop{4, 4});
          break;
        }
        list.emplace_back(
            RandomCrop{.height = 4 + random.Between(0, 20),
                       .width = 4 + random.Between(0, 20),
                       .padding = NextMargins(random, 4),
                       .pad_if_needed = true,
                       .fill = NextFill(random),
                       .padding_mode = has_boxes ? Padding::kConstant : NextPadding(random)});
        break;
      case 7:
        list.emplace_back(RandomHorizontalFlip{});
        break;
      default:
        list.emplace_back(RandomVerticalFlip{});
        break;
    }
  }
  if (has_boxes && random.OneIn(2)) list.emplace_back(SanitizeBoundingBoxes{});
  if (has_boxes && random.OneIn(2)) list.emplace_back(ClampBoundingBoxes{});
  if (has_boxes && random.OneIn(2)) list.emplace_back(ConvertBoundingBoxFormat{BoxFormat::kXywh});
  const bool fractions = dtype != DType::kU8, normalizes = fractions && random.OneIn(2);
  const bool normalizes_last = pads && random.OneIn(2);
  const Normalize normalize{{0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}};
  if (normalizes && !normalizes_last) list.emplace_back(normalize);
  if (random.OneIn(2)) {
    const bool noise = fractions && !normalizes_last && random.OneIn(2);
    list.emplace_back(RandomErasing{.p = 0.7, .value = {1, 0, 1}, .noise = noise});
  }
  if (pads) {
    PadTo pad_to{260 + random.Between(0, 140), 260 + random.Between(0, 140)};
    if (!normalizes || normalizes_last) pad_to.fill = NextFill(random);
    list.emplace_back(pad_to);
  }
  if (normalizes && normalizes_last) list.emplace_back(normalize);
  return list;
}

}  // namespace stoker::testing
