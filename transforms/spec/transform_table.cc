#include "transforms/spec/transform_table.h"

#include <algorithm>
#include <array>
#include <cfloat>
#include <cmath>
#include <functional>
#include <span>
#include <string_view>
#include <utility>

#include "core/batch/channels.h"
#include "core/batch/image.h"
#include "transforms/augment/augmenter.h"
#include "transforms/augment/blur/blur.h"
#include "transforms/augment/geometry/affine.h"
#include "transforms/augment/geometry/elastic.h"
#include "transforms/mix/batch_mix.h"
#include "transforms/resize/row_format.h"
#include "transforms/spec/weights.h"

namespace stoker {

namespace {

using Check = std::optional<Refusal>;
using Choices = std::vector<OptionInfo::Choice>;

constexpr double kMaxFactor = 1e6;  // for colours
constexpr float kMaxValue = 60000;  // for erasing: float16 holds up to 65504
constexpr double kMinRatio = 1.0 / kMaxSidePixels;
constexpr const char* kPixels = " pixels";

// Returns the list of a transform that holds others.
template <typename List, typename OneOfThem>
List* ListIn(OneOfThem& transform) {
  return std::visit(
      [](auto& t) -> List* {
        if constexpr (requires { t.transforms; }) return &t.transforms;
        return nullptr;
      },
      transform);
}

// Whether a transform, or one that it holds, acts on this.
bool AnyActsOn(ActsOn on, const Transform& transform) {
  if (const std::vector<Transform>* held = HeldBy(transform)) {
    return std::ranges::any_of(*held, [on](const Transform& each) { return AnyActsOn(on, each); });
  }
  return RowOf(transform).acts_on == on;
}

// Returns how deep a transform is with those that it holds: 1 if it holds none.
size_t DepthOf(const Transform& transform) {
  size_t deepest = 0;
  if (const std::vector<Transform>* held = HeldBy(transform)) {
    for (const Transform& each : *held) deepest = std::max(deepest, DepthOf(each));
  }
  return deepest + 1;
}

// ---- Parameters by type.

template <typename T, typename Value>
T OwnerOf(Value T::*member);  // not defined: for decltype

template <auto member>
Option<Transform> OptionOf(OptionInfo info) {
  using T = decltype(OwnerOf(member));
  return {std::move(info), [](Transform& t) { return ValueAt(std::get<T>(t).*member); }};
}

template <auto member>
Parameter Single(const char* kind, OptionInfo info, const char* doc) {
  const char* name = info.name;
  return {.name = name, .kind = kind, .doc = doc, .options = {OptionOf<member>(std::move(info))}};
}

template <auto member>
Parameter Probability(const char* doc = "0 to 1.") {
  return Single<member>("real", {.name = "p", .low = 0, .high = 1}, doc);
}

template <auto member>
Parameter Boolean(const char* name, const char* doc) {
  return Single<member>("boolean", {.name = name}, doc);
}

template <auto member>
Parameter Integer(const char* name, int low, int high, const char* doc) {
  return Single<member>("integer", {.name = name, .low = 1.0 * low, .high = 1.0 * high}, doc);
}

// A pair (least, most). Kinds other than "range" also accept a number.
template <auto member>
Parameter Range(const char* name, double low, double high, const char* doc,
                const char* kind = "range") {
  return Single<member>(kind, {.name = name, .low = low, .high = high}, doc);
}

template <auto member>
Parameter ChoiceOf(const char* name, const Choices& choices, const char* doc) {
  return Single<member>("choice", {.name = name, .choices = choices}, doc);
}

template <auto member>
Parameter FillOf(const char* doc) {
  return Single<member>("fill", {.name = "fill", .note = "each 0 to 255"}, doc);
}

const Choices& Paddings() {
  static const Choices choices{{"constant", Padding::kConstant},
                               {"edge", Padding::kEdge},
                               {"reflect", Padding::kReflect},
                               {"symmetric", Padding::kSymmetric}};
  return choices;
}

template <auto member>
Parameter PaddingMode(const char* doc) {
  return ChoiceOf<member>("padding_mode", Paddings(), doc);
}

std::string SizeText(int height, int width) {
  return std::to_string(height) + " × " + std::to_string(width);
}

// height × width, both required.
template <auto height, auto width>
Parameter Sides(const char* name, const char* kind, const OptionInfo& first,
                const OptionInfo& second, const char* doc) {
  using T = decltype(OwnerOf(height));
  return {.name = name,
          .kind = kind,
          .doc = doc,
          .options = {OptionOf<height>(first), OptionOf<width>(second)},
          .text = [](const Transform& t) {
            return SizeText(std::get<T>(t).*height, std::get<T>(t).*width);
          }};
}

template <auto height, auto width>
Parameter Size(const char* doc) {
  OptionInfo side{.required = true, .low = 1, .high = kMaxSidePixels, .unit = kPixels};
  OptionInfo first = side, second = side;
  first.name = "height";
  second.name = "width";
  return Sides<height, width>("size", "sides", first, second, doc);
}

template <typename Enums>
Choices ChoicesOf(const Enums& enums) {
  Choices choices;
  for (const auto each : enums) choices.push_back({NameOf(each), each});
  return choices;
}

// The parameter for the filter of a resampling.
template <auto member>
Parameter HowPixelsBlend() {
  return Single<member>(
      "interpolation", {.name = "interpolation", .choices = ChoicesOf(kInterpolations)},
      "Pillow's filter: \"bilinear\", \"bicubic\", \"lanczos\", \"box\" or \"nearest\", or "
      "torchvision's or Pillow's names for it. \"box\" is not called \"area\": in OpenCV and "
      "TensorFlow that also weighs partly covered pixels.");
}

constexpr const char* kAntialias =
    "True: the filter widens when shrinking, as in Pillow and torchvision. False: it keeps its "
    "width (bilinear: two taps), as in tf.image.resize and, bilinear, in OpenCV. \"nearest\" takes "
    "one pixel either way.";

template <auto member>
Parameter ResampledLike() {
  return ChoiceOf<member>(
      "resampler", ChoicesOf(kResamplers),
      "the library whose pixels the result has. \"pillow\": Pillow's, bilinear within one level. "
      "\"pillow_exact\": Pillow's, bilinear too; slower. \"torchvision\": torchvision's for uint8 "
      "tensors on CPUs; bilinear, bicubic and lanczos, antialiased only. Not with dtype uint16; "
      "images of 16 bits are resampled in floats with each.");
}

// Returns nullopt if the library has the filter, and images of the type.
Check CheckFilter(const std::optional<ResamplingFilter>& filter, DType dtype) {
  if (!filter || filter->resampler == ResampledAs::kPillow) return {};
  const std::string resampler = std::string("resampler = ") + NameOf(filter->resampler);
  if (dtype == DType::kU16) {
    return Refusal{resampler + " with dtype uint16, which is resampled in floats",
                   "Leave resampler out, or ask for uint8"};
  }
  const Interpolation interpolation = filter->interpolation;
  const bool torchvision = filter->resampler == ResampledAs::kTorchvision;
  if (torchvision &&
      (interpolation == Interpolation::kNearest || interpolation == Interpolation::kBox)) {
    return Refusal{resampler + " with interpolation = " + NameOf(interpolation),
                   "Give interpolation = bilinear, bicubic or lanczos with it"};
  }
  if (filter->antialias || (!torchvision && interpolation != Interpolation::kBilinear)) return {};
  return Refusal{resampler + " without antialias", "Give antialias = true with it"};
}

// ---- Parameters that policies and affine transforms share.

template <auto member>
Parameter HowPixelsMove() {
  return Single<member>(
      "interpolation",
      {.name = "interpolation",
       .choices = ChoicesOf(std::array{Interpolation::kNearest, Interpolation::kBilinear})},
      "where pixels move: \"nearest\" or \"bilinear\", or torchvision's or "
      "Pillow's names for it.");
}

template <auto member>
Parameter FillOfPolicy() {
  return Single<member>(
      "optional fill",
      {.name = "fill",
       .note =
           "which is black, as `[0, 0, 0]` is, with which bilinear interpolation blends the border "
           "once more"},
      "of pixels that come from outside the image: an int 0 to 255, or (red, green, blue). None is "
      "black; given, even as 0, bilinear blends the border with it, as torchvision does.");
}

// ---- Parameters that affine transforms share.

constexpr double kMostDegrees = 3600;  // ten turns
constexpr double kMostShear = 89;
constexpr double kLeastZoom = -0.999;  // at -1 all of the output would be one pixel

template <auto member>
Parameter Angles(const char* doc) {
  return Single<member>(
      "spread", {.name = "degrees", .required = true, .low = -kMostDegrees, .high = kMostDegrees},
      doc);
}

template <auto member>
Parameter Factor(const char* name, bool required, const char* doc, double low = -1) {
  return Single<member>("spread", {.name = name, .required = required, .low = low, .high = 1}, doc);
}

// Two options that Python has as one parameter.
template <auto first, auto second>
Parameter Both(const char* name, const char* kind, const OptionInfo& x, const OptionInfo& y,
               const char* doc) {
  return {
      .name = name, .kind = kind, .doc = doc, .options = {OptionOf<first>(x), OptionOf<second>(y)}};
}

template <auto x, auto y>
Parameter Center() {
  const auto side = [](const char* name) {
    return OptionInfo{.name = name,
                      .low = -kMaxSidePixels,
                      .high = kMaxSidePixels,
                      .unit = kPixels,
                      .note = "without it the middle"};
  };
  return Both<x, y>("center", "center", side("center_x"), side("center_y"),
                    "(x, y) in pixels from the upper left corner. None: the middle.");
}

template <auto member>
Parameter BlendedFill() {
  return Single<member>(
      "blended fill",
      {.name = "fill", .note = "`null` is black, with which the border is blended once"},
      "of pixels that come from outside the image: an int 0 to 255, or (red, green, blue), with "
      "which bilinear blends the border twice, as torchvision does. None: black, once.");
}

template <auto member>
Parameter AffinePadding() {
  Choices choices = Paddings();
  choices.push_back({"wrap", Padding::kWrap});
  Parameter parameter = ChoiceOf<member>(
      "padding_mode", choices,
      "of pixels that come from outside the image: as for `Pad`, or \"wrap\": from the opposite "
      "side. Keras' fill_mode \"reflect\" is \"symmetric\" here, its \"nearest\" is \"edge\", and "
      "its "
      "\"constant\" and \"wrap\" have the same names.");
  parameter.kind = "affine padding";
  return parameter;
}

template <auto member>
Parameter FillOfAffine() {
  return FillOf<member>("for \"constant\": an int 0 to 255, or (red, green, blue).");
}

// ---- One entry for each transform.

TransformRow Row(const Resize&) {
  using T = Resize;
  const auto side = [](const char* name) {
    return OptionInfo{.name = name, .low = 0, .high = kMaxSidePixels, .unit = kPixels};
  };
  OptionInfo size = side("size");
  size.note = "of the shorter side; or `height` and `width`";
  OptionInfo most = side("max_size");
  most.note = "the most that the longer side may have; 0 means no limit";
  return {.name = "Resize",
          .doc = "The whole image, resized.",
          .how = "while rows are decoded; only what later crops keep is decoded",
          .parameters =
              {{.name = "size",
                .kind = "size",
                .doc = "an int: the shorter side becomes `size`, the longer one int(size * long / "
                       "short). (height, width): exactly that. None: the longer side becomes "
                       "max_size.",
                .options = {OptionOf<&T::size>(size), OptionOf<&T::height>(side("height")),
                            OptionOf<&T::width>(side("width"))},
                .text =
                    [](const Transform& transform) {
                      const auto& t = std::get<T>(transform);
                      if (t.size != 0) return "shorter side " + std::to_string(t.size);
                      return t.height != 0 ? SizeText(t.height, t.width) : std::string();
                    }},
               HowPixelsBlend<&T::interpolation>(),
               Single<&T::max_size>("optional side", most,
                                    "the longer side is at most this, which makes the shorter one "
                                    "smaller where it must. None: no limit."),
               Boolean<&T::antialias>("antialias", kAntialias),
               ResampledLike<&T::resampler>()},
          .check = [](const Transform& transform, DType) -> Check {
            const auto& t = std::get<T>(transform);
            const auto missing = [](const char* name, int value) {
              return CheckInteger({.name = name, .unit = kPixels}, value, 1, kMaxSidePixels);
            };
            const bool exact = t.height != 0 || t.width != 0;
            if (t.max_size != 0 && (exact || t.max_size <= t.size)) {
              return Refusal{"max_size = " + std::to_string(t.max_size) +
                                 (exact ? " together with height and width"
                                        : " is not above size = " + std::to_string(t.size)),
                             exact ? "Give size (of the shorter side) with it, or leave it out"
                                   : "Give a larger max_size, or no size, for the longer side "
                                     "alone"};
            }
            if (t.size == 0 && !exact) {
              if (t.max_size != 0) return {};
              return Refusal{"neither size nor max_size is given",
                             "Give the size of the shorter side, or "
                             "height and width, or max_size of the longer side"};
            }
            if (t.size == 0) {
              if (Check check = missing("height", t.height)) return check;
              return missing("width", t.width);
            }
            if (!exact) return {};
            return Refusal{"size = " + std::to_string(t.size) + " together with height = " +
                               std::to_string(t.height) + ", width = " + std::to_string(t.width),
                           "Give size (of the shorter side), or height and width"};
          }};
}

TransformRow Row(const CenterCrop&) {
  using T = CenterCrop;
  return {
      .name = "CenterCrop",
      .doc = "The middle height × width pixels; an image that is too small is padded with zeros.",
      .how = "nothing else is decoded",
      .parameters = {Size<&T::height, &T::width>("an int (a square), or (height, width).")}};
}

TransformRow Row(const RandomResizedCrop&) {
  using T = RandomResizedCrop;
  return {.name = "RandomResizedCrop",
          .doc =
              "A box of random area and aspect ratio at a random place, resized.\n\n"
              "After ten attempts that do not fit: the largest central box within `ratio`.",
          .how = "only its box is decoded, and resampled while its rows are",
          .parameters = {Size<&T::height, &T::width>(
                             "of the result: an int (a square), or (height, width)."),
                         Range<&T::scale>("scale", 0, 1e6,
                                          "(least, most) of the image's area, as a share of it."),
                         Range<&T::ratio>("ratio", kMinRatio, kMaxSidePixels,
                                          "(least, most) of width / height, drawn log-uniformly."),
                         HowPixelsBlend<&T::interpolation>(),
                         Boolean<&T::antialias>("antialias", kAntialias),
                         ResampledLike<&T::resampler>()},
          .check = [](const Transform& transform, DType) -> Check {
            if (std::get<T>(transform).scale[1] > 0) return {};
            return Refusal{"scale = (0, 0)", "Give scale with a largest that is positive"};
          }};
}

TransformRow Row(const RandomHorizontalFlip&) {
  return {.name = "RandomHorizontalFlip",
          .doc = "Left and right change places with probability `p`.",
          .keeps_size = true,
          .how = "rows are written from right to left",
          .parameters = {Probability<&RandomHorizontalFlip::p>()}};
}

TransformRow Row(const RandomVerticalFlip&) {
  return {.name = "RandomVerticalFlip",
          .doc = "Top and bottom change places with probability `p`.",
          .keeps_size = true,
          .how = "rows are written from bottom to top",
          .parameters = {Probability<&RandomVerticalFlip::p>()}};
}

Check CheckNormalize(const Transform& transform, DType dtype) {
  const auto& [mean, std] = std::get<Normalize>(transform);
  if (dtype == DType::kU8 || dtype == DType::kU16) {
    return Refusal{std::string("its values do not fit ") + NameOf(dtype),
                   "Ask for dtype float32, float16 or bfloat16, or normalise on the device"};
  }
  const size_t channels = std::max(mean.size(), std.size());
  for (const auto* given : {&mean, &std}) {
    if (given->size() == 1 || (given->size() == channels && channels <= kMostChannels)) continue;
    return Refusal{"mean has " + std::to_string(mean.size()) + " numbers, and std " +
                       std::to_string(std.size()),
                   "Give one for each channel, or one for all"};
  }
  for (size_t c = 0; c < channels; ++c) {
    const std::string channel = std::string("[") + std::to_string(c) + "] = ";
    const float mean_of = ChannelOf(mean, c), std_of = ChannelOf(std, c);
    if (!std::isfinite(mean_of)) {
      return Refusal{"mean" + channel + NumberText(mean_of), "Give a finite mean"};
    }
    if (!std::isnormal(std_of) || std_of < 0 || !std::isfinite(mean_of / std_of) ||
        !std::isfinite(1 / std_of)) {
      return Refusal{"std" + channel + NumberText(std_of), "Give a positive std"};
    }
  }
  return {};
}

TransformRow Row(const Normalize&) {
  return {.name = "Normalize",
          .doc =
              "(value / 255 - mean) / std for each channel; last in the list, and not with "
              "dtype=\"uint8\".",
          .acts_on = ActsOn::kValues,
          .how = "with the conversion to the row's type",
          .parameters = {Single<&Normalize::mean>(
                             "channels", {.name = "mean"},
                             "numbers, one for each channel (red, green, blue, …) or one for "
                             "all: a sequence, an array or a tensor."),
                         Single<&Normalize::std>("positive channels", {.name = "std"},
                                                 "positive numbers, likewise.")},
          .check = &CheckNormalize};
}

OptionInfo MarginsInfo(bool required) {
  return {.name = "padding",
          .required = required,
          .low = 0,
          .high = kMaxSidePixels,
          .unit = kPixels,
          .note = "`[left, top, right, bottom]`"};
}

TransformRow Row(const Pad&) {
  using T = Pad;
  return {
      .name = "Pad",
      .doc = "Pixels around the image.",
      .how = "zeros are written where there are no pixels",
      .parameters = {
          Single<&T::padding>("margins", MarginsInfo(/*required=*/true),
                              "pixels, 0 to 65,535: an int, (left and right, top and bottom), or "
                              "(left, top, right, "
                              "bottom)."),
          FillOf<&T::fill>("for \"constant\": an int 0 to 255, or (red, green, blue)."),
          PaddingMode<&T::padding_mode>(
              "\"constant\"; \"edge\": the last pixel, again and again; \"reflect\": mirrored, the "
              "last pixel once; \"symmetric\": mirrored, the last pixel twice.")}};
}

TransformRow Row(const RandomCrop&) {
  using T = RandomCrop;
  return {
      .name = "RandomCrop",
      .doc =
          "height × width pixels at a random place, after padding.\n\n"
          "An image that is smaller is an error of its sample.",
      .how = "nothing else is decoded",
      .parameters = {
          Size<&T::height, &T::width>("of the result: an int (a square), or (height, width)."),
          Single<&T::padding>("margins", MarginsInfo(/*required=*/false),
                              "as for `Pad`; None means none."),
          Boolean<&T::pad_if_needed>(
              "pad_if_needed", "pad smaller images first, on both sides by all that they lack."),
          FillOf<&T::fill>("as for `Pad`."), PaddingMode<&T::padding_mode>("as for `Pad`.")}};
}

TransformRow Row(const RandomSizeCrop&) {
  using T = RandomSizeCrop;
  const auto side = [](const char* name) {
    return OptionInfo{
        .name = name, .required = true, .low = 1, .high = kMaxSidePixels, .unit = kPixels};
  };
  return {.name = "RandomSizeCrop",
          .doc =
              "A part of random size at a random place. (Carion et al., ECCV 2020)\n\n"
              "Images then differ in size: a `Resize` or a `PadTo` follows. A side of the image "
              "that is shorter than `min_size` is kept; with `square`, both then get the length of "
              "the shorter one.",
          .how = "nothing else is decoded",
          .parameters = {Single<&T::min_size>("integer", side("min_size"),
                                              "the least width and height in pixels."),
                         Single<&T::max_size>("integer", side("max_size"),
                                              "the largest width and height in pixels."),
                         Boolean<&T::square>("square",
                                             "True: width and height are equal, as in RF-DETR. "
                                             "False: each is drawn by itself, as in DETR.")},
          .check = [](const Transform& transform, DType) -> Check {
            const auto& t = std::get<T>(transform);
            if (t.min_size <= t.max_size) return {};
            return Refusal{"min_size = " + std::to_string(t.min_size) +
                               " is above max_size = " + std::to_string(t.max_size),
                           "Give them in order"};
          }};
}

TransformRow Row(const RandomZoomOut&) {
  using T = RandomZoomOut;
  return {
      .name = "RandomZoomOut",
      .doc =
          "The image at a random place of a larger one, with probability `p`. (Liu et al., ECCV "
          "2016)\n\n"
          "The larger one has at most 65,535 pixels on a side.",
      .how = "zeros are written where there are no pixels",
      .parameters = {FillOf<&T::fill>("as for `Pad`."),
                     Range<&T::side_range>("side_range", 1, 100,
                                           "(least, most) of the larger image's sides, as "
                                           "multiples of the image's, 1 to 100."),
                     Probability<&T::p>()}};
}

constexpr int kMostTrials = 50;  // with 20 rounds, what a stream of random numbers has

Check CheckIoUCrop(const Transform& transform, DType /*dtype*/) {
  const auto& t = std::get<RandomIoUCrop>(transform);
  const auto is_above = [](const char* low, double least, const char* high, double most) {
    return Refusal{std::string(low) + " = " + NumberText(least) + " is above " + high + " = " +
                       NumberText(most),
                   "Give them in order"};
  };
  if (t.min_scale > t.max_scale) {
    return is_above("min_scale", t.min_scale, "max_scale", t.max_scale);
  }
  if (t.min_aspect_ratio > t.max_aspect_ratio) {
    return is_above("min_aspect_ratio", t.min_aspect_ratio, "max_aspect_ratio", t.max_aspect_ratio);
  }
  for (const double overlap : t.sampler_options) {
    if (overlap >= 0 && std::isfinite(overlap)) continue;
    return Refusal{"sampler_options has " + NumberText(overlap),
                   "Give overlaps from 0 on; with 1, the image stays whole"};
  }
  return {};
}

TransformRow Row(const RandomIoUCrop&) {
  using T = RandomIoUCrop;
  const auto share = [](const char* name) {
    return OptionInfo{.name = name, .low = kMinRatio, .high = 1};
  };
  const auto ratio = [](const char* name) {
    return OptionInfo{.name = name, .low = kMinRatio, .high = kMaxSidePixels};
  };
  return {
      .name = "RandomIoUCrop",
      .doc =
          "A random part of the image that overlaps one of its boxes; objects whose center is "
          "outside are dropped. (Liu et al., ECCV 2016)\n\n"
          "Samples must have boxes; an image without objects stays whole. torchvision's sets boxes "
          "to zeros, which `SanitizeBoundingBoxes` then drops.",
      .how = "nothing else is decoded; the crop depends on the boxes",
      .parameters =
          {Single<&T::min_scale>("real", share("min_scale"),
                                 "the least share of the image's width, and of its height."),
           Single<&T::max_scale>("real", share("max_scale"), "the largest share."),
           Single<&T::min_aspect_ratio>("real", ratio("min_aspect_ratio"),
                                        "the least width / height."),
           Single<&T::max_aspect_ratio>("real", ratio("max_aspect_ratio"),
                                        "the largest width / height."),
           Single<&T::sampler_options>(
               "overlaps",
               {.name = "sampler_options",
                .note = "overlaps (intersection / union) from 0 on; `[]` is `[0, 0.1, 0.3, 0.5, "
                        "0.7, 0.9, 1]`"},
               "overlaps, intersection / union, to draw from: at least one box must overlap the "
               "part by that much; with 1 the image stays whole. None: 0, 0.1, 0.3, 0.5, 0.7, 0.9 "
               "and 1."),
           Integer<&T::trials>("trials", 1, kMostTrials,
                               "parts to try before another overlap is chosen, 1 to 50. After 20 "
                               "overlaps the image stays whole.")},
      .check = &CheckIoUCrop};
}

TransformRow Row(const RandomShortestSize&) {
  using T = RandomShortestSize;
  const OptionInfo sizes{.name = "min_size",
                         .required = true,
                         .low = 1,
                         .high = kMaxSidePixels,
                         .unit = kPixels,
                         .note = "a list of 1 to 256 sizes of the shorter side"};
  const OptionInfo most{.name = "max_size",
                        .low = 0,
                        .high = kMaxSidePixels,
                        .unit = kPixels,
                        .note = "the most that the longer side may have; 0 means no limit"};
  return {.name = "RandomShortestSize",
          .doc =
              "The whole image, resized to a size that is drawn for each image.\n\n"
              "Images then differ in size: a crop or a `PadTo` follows.",
          .how = "while rows are decoded; only what later crops keep is decoded",
          .parameters = {Single<&T::min_size>(
                             "side or sides", sizes,
                             "an int, or a list of them to draw from: the shorter side becomes "
                             "that, unless the longer one would be more than max_size."),
                         Single<&T::max_size>("optional side", most,
                                              "the longer side is at most this, which makes the "
                                              "shorter one smaller where it must. None: no limit."),
                         HowPixelsBlend<&T::interpolation>(),
                         Boolean<&T::antialias>("antialias", kAntialias),
                         ResampledLike<&T::resampler>()},
          .check = [](const Transform& transform, DType) -> Check {
            if (!std::get<T>(transform).min_size.empty()) return {};
            return Refusal{"min_size has no sizes", "Give at least one"};
          }};
}

constexpr double kMostScale = 100;

TransformRow Row(const ScaleJitter&) {
  using T = ScaleJitter;
  const auto side = [](const char* name) {
    return OptionInfo{
        .name = name, .required = true, .low = 1, .high = kMaxSidePixels, .unit = kPixels};
  };
  return {.name = "ScaleJitter",
          .doc =
              "The whole image, resized to fit a size, times a random factor. (Ghiasi et al., CVPR "
              "2021)\n\n"
              "Images then differ in size: a crop or a `PadTo` follows.",
          .how = "while rows are decoded; only what later crops keep is decoded",
          .parameters = {Sides<&T::height, &T::width>(
                             "target_size", "width and height", side("height"), side("width"),
                             "of an image with the factor 1, which has one of these sides, and "
                             "the other one is not larger: an int (a square), or (width, height), "
                             "in torchvision's order."),
                         Range<&T::scale_range>("scale_range", kMinRatio, kMostScale,
                                                "(least, most) of the factor, up to 100."),
                         HowPixelsBlend<&T::interpolation>(),
                         Boolean<&T::antialias>("antialias", kAntialias),
                         ResampledLike<&T::resampler>()}};
}

TransformRow Row(const ColorJitter&) {
  using T = ColorJitter;
  return {.name = "ColorJitter",
          .doc =
              "Brightness, contrast, saturation and hue change by random factors, in random "
              "order.",
          .acts_on = ActsOn::kPixels,
          .draws = 1,
          .parameters = {
              Range<&T::brightness>("brightness", 0, kMaxFactor,
                                    "a number x: the factor is uniform in [max(0, 1 - x), 1 + x]; "
                                    "or (least, most).",
                                    "factor"),
              Range<&T::contrast>("contrast", 0, kMaxFactor, "likewise.", "factor"),
              Range<&T::saturation>("saturation", 0, kMaxFactor, "likewise.", "factor"),
              Range<&T::hue>("hue", -0.5, 0.5,
                             "a number x, 0 to 0.5: the shift is uniform in [-x, x] turns; or "
                             "(least, most).",
                             "shift"),
              Probability<&T::p>("of any change, 0 to 1.")}};
}

TransformRow Row(const RandomPhotometricDistort&) {
  using T = RandomPhotometricDistort;
  constexpr const char* kFactor = "(least, most) of the factor.";
  return {.name = "RandomPhotometricDistort",
          .doc =
              "Brightness, contrast, saturation and hue change by random factors, each with "
              "probability `p`, and channels may change places. (Liu et al., ECCV 2016)\n\n"
              "Contrast changes before saturation and hue or after them.",
          .acts_on = ActsOn::kPixels,
          .draws = 21,
          .parameters = {
              Range<&T::brightness>("brightness", 0, kMaxFactor, kFactor),
              Range<&T::contrast>("contrast", 0, kMaxFactor, kFactor),
              Range<&T::saturation>("saturation", 0, kMaxFactor, kFactor),
              Range<&T::hue>("hue", -0.5, 0.5, "(least, most) of the shift in turns, -0.5 to 0.5."),
              Probability<&T::p>("0 to 1, of each change.")}};
}

TransformRow Row(const RandomHSV&) {
  using T = RandomHSV;
  return {
      .name = "RandomHSV",
      .doc =
          "Hue, saturation and value of the HSV hexcone change by random amounts, as in YOLO's "
          "recipes.\n\n"
          "The defaults are YOLO's `hsv_h`, `hsv_s` and `hsv_v`. Saturation is at most 1 "
          "afterwards, value at most 255, and channels are rounded once, to the nearest integer.",
      .acts_on = ActsOn::kPixels,
      .draws = 23,
      .parameters = {
          Range<&T::hue>("hue", -0.5, 0.5,
                         "a number x, 0 to 0.5: the shift is uniform in [-x, x] turns; or "
                         "(least, most).",
                         "turn"),
          Range<&T::saturation>("saturation", 0, kMaxFactor,
                                "a number x: the factor is uniform in [max(0, 1 - x), 1 + x]; "
                                "or (least, most).",
                                "gain"),
          Range<&T::value>("value", 0, kMaxFactor, "likewise.", "gain")}};
}

TransformRow Row(const RandomGrayscale&) {
  return {.name = "RandomGrayscale",
          .doc = "Three equal channels with probability `p`.",
          .acts_on = ActsOn::kPixels,
          .draws = 2,
          .parameters = {Probability<&RandomGrayscale::p>()}};
}

TransformRow Row(const RandomSolarize&) {
  using T = RandomSolarize;
  Parameter threshold = Single<&T::threshold>(
      "real", {.name = "threshold", .required = true, .low = 0, .high = 255}, "0 to 255.");
  return {.name = "RandomSolarize",
          .doc = "Values that are at least `threshold` are inverted, with probability `p`.",
          .acts_on = ActsOn::kPixels,
          .draws = 7,
          .parameters = {std::move(threshold), Probability<&T::p>()}};
}

TransformRow Row(const RandomInvert&) {
  return {.name = "RandomInvert",
          .doc = "All values are inverted with probability `p`.",
          .acts_on = ActsOn::kPixels,
          .draws = 16,
          .parameters = {Probability<&RandomInvert::p>()}};
}

TransformRow Row(const RandomPosterize&) {
  using T = RandomPosterize;
  Parameter bits =
      Integer<&T::bits>("bits", 0, 8, "how many high bits of each value stay, 0 to 8.");
  bits.options[0].required = true;
  return {.name = "RandomPosterize",
          .doc = "Only the high bits of each value stay, with probability `p`.",
          .acts_on = ActsOn::kPixels,
          .draws = 17,
          .parameters = {std::move(bits), Probability<&T::p>()}};
}

TransformRow Row(const RandomAdjustSharpness&) {
  using T = RandomAdjustSharpness;
  Parameter factor = Single<&T::sharpness_factor>(
      "real", {.name = "sharpness_factor", .required = true, .low = 0, .high = kMaxFactor},
      "0 is a smoothed image, 1 the image as it is, and 2 is twice as sharp.");
  return {.name = "RandomAdjustSharpness",
          .doc = "The image becomes sharper or smoother, with probability `p`.",
          .acts_on = ActsOn::kPixels,
          .draws = 18,
          .parameters = {std::move(factor), Probability<&T::p>()}};
}

TransformRow Row(const RandomAutocontrast&) {
  return {.name = "RandomAutocontrast",
          .doc = "Each channel is stretched to 0 to 255, with probability `p`.",
          .acts_on = ActsOn::kPixels,
          .draws = 19,
          .parameters = {Probability<&RandomAutocontrast::p>()}};
}

TransformRow Row(const RandomEqualize&) {
  return {.name = "RandomEqualize",
          .doc = "The histogram of each channel is equalized, with probability `p`.",
          .acts_on = ActsOn::kPixels,
          .draws = 20,
          .parameters = {Probability<&RandomEqualize::p>()}};
}

TransformRow Row(const GaussianBlur&) {
  using T = GaussianBlur;
  const auto taps = [](const char* name) {
    return OptionInfo{
        .name = name, .required = true, .low = 1, .high = 1023, .step = 2, .unit = kPixels};
  };
  return {
      .name = "GaussianBlur",
      .doc =
          "A Gaussian whose deviation is uniform in `sigma`, the same along both axes; "
          "borders are mirrored.",
      .acts_on = ActsOn::kPixels,
      .draws = 3,
      .parameters = {Sides<&T::kernel_height, &T::kernel_width>(
                         "kernel_size", "taps", taps("kernel_height"), taps("kernel_width"),
                         "taps, an odd int, or (along x, along y), as torchvision has them."),
                     Range<&T::sigma>("sigma", 0x1p-20, 1e6,
                                      "(least, most) in pixels, or a number.", "range or number"),
                     Probability<&T::p>("of any change, 0 to 1.")},
      .scratch = [](const Transform& transform, ImageSize tile) -> uint64_t {
        const auto& t = std::get<T>(transform);
        return BlurScratchBytes({{t.kernel_width, t.kernel_height}, 1, 1}, tile);
      }};
}

TransformRow Row(const RandomAffine&) {
  using T = RandomAffine;
  const auto share = [](const char* name) { return OptionInfo{.name = name, .low = 0, .high = 1}; };
  const auto shear = [](const char* name) {
    return OptionInfo{.name = name, .low = -kMostShear, .high = kMostShear};
  };
  return {
      .name = "RandomAffine",
      .doc =
          "The image is rotated, moved, scaled and sheared about its center by random amounts, and "
          "sampled once. It keeps its size.",
      .acts_on = ActsOn::kPixels,
      .draws = 9,
      .parameters = {
          Angles<&T::degrees>("clockwise; a number x: uniform in [-x, x]; or (least, most)."),
          Both<&T::translate_x, &T::translate_y>(
              "translate", "shares", share("translate_x"), share("translate_y"),
              "(x, y): by up to these shares of the width and the height, in whole pixels. None: "
              "not at all."),
          Single<&T::scale>("optional range",
                            {.name = "scale", .low = kMinRatio, .high = kMaxSidePixels},
                            "(least, most): above 1 the image becomes larger. None: not at all."),
          Both<&T::shear_x, &T::shear_y>(
              "shear", "shear", shear("shear_x"), shear("shear_y"),
              "degrees. A number x: along x, uniform in [-x, x]; (least, most): along x; four "
              "numbers: (least, most) along x and then along y. None: not at all."),
          HowPixelsMove<&T::interpolation>(), BlendedFill<&T::fill>(),
          Center<&T::center_x, &T::center_y>(), AffinePadding<&T::padding_mode>()}};
}

Check CheckRotation(const Transform& transform, DType /*dtype*/) {
  if (!std::get<RandomRotation>(transform).expand) return {};
  return Refusal{"expand = true: the images of a batch would differ in size",
                 "Leave expand out, and images keep their size; or Pad them before it"};
}

TransformRow Row(const RandomRotation&) {
  using T = RandomRotation;
  return {
      .name = "RandomRotation",
      .doc =
          "The image is rotated by a random angle. It keeps its size.\n\n"
          "Angles are in degrees. Keras' layer has shares of a turn: its RandomRotation(factor) is "
          "`RandomRotation(360 * factor, \"bilinear\", fill=None, padding_mode=\"symmetric\")`.",
      .acts_on = ActsOn::kPixels,
      .draws = 10,
      .parameters = {Angles<&T::degrees>(
                         "counterclockwise; a number x: uniform in [-x, x]; or (least, most)."),
                     HowPixelsMove<&T::interpolation>(),
                     Boolean<&T::expand>("expand",
                                         "False; True is refused, since the images "
                                         "of a batch would differ in size."),
                     Center<&T::center_x, &T::center_y>(), BlendedFill<&T::fill>(),
                     AffinePadding<&T::padding_mode>()},
      .check = &CheckRotation};
}

TransformRow Row(const RandomPerspective&) {
  using T = RandomPerspective;
  return {
      .name = "RandomPerspective",
      .doc =
          "The image is seen from a random direction, with probability `p`: its corners move "
          "inwards, and it is sampled once. It keeps its size.\n\n"
          "The map is a projective one, so that it does not go with `geometry=True`; and "
          "samples with masks of shapes have a distortion_scale of at most 0.5, above which an "
          "image may be seen twice.",
      .acts_on = ActsOn::kPixels,
      .draws = 22,
      .parameters = {
          Single<&T::distortion_scale>("real", {.name = "distortion_scale", .low = 0, .high = 1},
                                       "0 to 1: each corner moves by up to this share of half "
                                       "the width and half the height, in whole pixels."),
          Probability<&T::p>(), HowPixelsMove<&T::interpolation>(), BlendedFill<&T::fill>()}};
}

TransformRow Row(const ElasticTransform&) {
  using T = ElasticTransform;
  constexpr double kMostAlpha = 1e5, kMostSigma = 100;
  return {
      .name = "ElasticTransform",
      .doc =
          "Each pixel comes from a place that smooth noise moves, and the image keeps its size.\n\n"
          "Boxes and keypoints move by whole pixels and the noise there, as torchvision moves "
          "them. It goes neither with `geometry=True` nor with masks of shapes.",
      .acts_on = ActsOn::kPixels,
      .draws = 25,
      .parameters = {Single<&T::alpha>(
                         "real", {.name = "alpha", .low = 0, .high = kMostAlpha},
                         "twice the pixels by which noise moves at most, before the blur."),
                     Single<&T::sigma>("real", {.name = "sigma", .low = 0, .high = kMostSigma},
                                       "of the noise's blur, in pixels, 0 to 100."),
                     HowPixelsMove<&T::interpolation>(), BlendedFill<&T::fill>()},
      .own_memory = [](const Transform& transform, ImageSize tile) -> uint64_t {
        return DisplacementBytes({.sigma = std::get<T>(transform).sigma}, tile);
      }};
}

TransformRow Row(const RandomZoom&) {
  using T = RandomZoom;
  return {.name = "RandomZoom",
          .doc =
              "Height and width are scaled about the center by random factors, as Keras' layer "
              "does. The image keeps its size.",
          .acts_on = ActsOn::kPixels,
          .draws = 11,
          .parameters = {
              Factor<&T::height_factor>(
                  "height_factor", true,
                  "a share, -0.999 to 1. A positive one zooms out: pixels come from 1 + "
                  "height_factor times their distance to the center. A number x: "
                  "uniform in [-x, x]; or (least, most).",
                  kLeastZoom),
              Single<&T::width_factor>("optional spread",
                                       {.name = "width_factor",
                                        .low = kLeastZoom,
                                        .high = 1,
                                        .note = "without it the same factor as for the height"},
                                       "likewise. None: the factor that is drawn for the height."),
              AffinePadding<&T::padding_mode>(), HowPixelsMove<&T::interpolation>(),
              FillOfAffine<&T::fill>()}};
}

TransformRow Row(const RandomTranslation&) {
  using T = RandomTranslation;
  return {
      .name = "RandomTranslation",
      .doc =
          "The image is moved by random shares of its height and width, as Keras' layer does.\n\n"
          "The distance is not rounded to whole pixels, as that of `RandomAffine` is.",
      .acts_on = ActsOn::kPixels,
      .draws = 12,
      .parameters = {
          Factor<&T::height_factor>(
              "height_factor", true,
              "a share of the height, -1 to 1, positive downwards. A number x: uniform "
              "in [-x, x]; or (least, most)."),
          Factor<&T::width_factor>("width_factor", true,
                                   "likewise a share of the width, positive to the right."),
          AffinePadding<&T::padding_mode>(), HowPixelsMove<&T::interpolation>(),
          FillOfAffine<&T::fill>()}};
}

TransformRow Row(const RandomShear&) {
  using T = RandomShear;
  return {.name = "RandomShear",
          .doc =
              "The image is sheared by random factors, as Keras' layer does.\n\n"
              "Pixel (x, y), counted from the upper left pixel, comes from (x + x_factor * y, y + "
              "y_factor "
              "* x).",
          .acts_on = ActsOn::kPixels,
          .draws = 13,
          .parameters = {Factor<&T::x_factor>(
                             "x_factor", false,
                             "columns for each row, -1 to 1. A number x: uniform in [-x, x]; or "
                             "(least, most). Half of the images are sheared by the opposite of "
                             "both factors."),
                         Factor<&T::y_factor>("y_factor", false, "rows for each column, likewise."),
                         HowPixelsMove<&T::interpolation>(), AffinePadding<&T::padding_mode>(),
                         FillOfAffine<&T::fill>()}};
}

TransformRow Row(const AutoAugment&) {
  using T = AutoAugment;
  return {
      .name = "AutoAugment",
      .doc = "One of 25 pairs of operations that were found by search. (Cubuk et al., CVPR 2019)",
      .acts_on = ActsOn::kPixels,
      .draws = 4,
      .parameters = {ChoiceOf<&T::policy>(
                         "policy",
                         {{"imagenet", T::Policy::kImageNet},
                          {"cifar10", T::Policy::kCifar10},
                          {"svhn", T::Policy::kSvhn}},
                         "\"imagenet\", \"cifar10\" or \"svhn\", or torchvision's names for them."),
                     HowPixelsMove<&T::interpolation>(), FillOfPolicy<&T::fill>()}};
}

constexpr int kMaxBins = 1000;

TransformRow Row(const RandAugment&) {
  using T = RandAugment;
  Parameter magnitude = Integer<&T::magnitude>("magnitude", 0, kMaxBins - 1,
                                               "the strength, 0 to num_magnitude_bins - 1.");
  magnitude.options[0].below = "num_magnitude_bins";
  return {.name = "RandAugment",
          .doc =
              "Some operations, each uniform among 14, all of one strength. (Cubuk et al., CVPR "
              "Workshops 2020)",
          .acts_on = ActsOn::kPixels,
          .draws = 5,
          .parameters = {
              Integer<&T::num_ops>("num_ops", 0, 100, "how many, 0 to 100."), std::move(magnitude),
              Integer<&T::num_magnitude_bins>("num_magnitude_bins", 2, kMaxBins, "2 to 1,000."),
              HowPixelsMove<&T::interpolation>(), FillOfPolicy<&T::fill>()}};
}

TransformRow Row(const TrivialAugmentWide&) {
  using T = TrivialAugmentWide;
  return {.name = "TrivialAugmentWide",
          .doc = "One operation of 14, of random strength. (Müller, Hutter, ICCV 2021)",
          .acts_on = ActsOn::kPixels,
          .draws = 6,
          .parameters = {Integer<&T::num_magnitude_bins>("num_magnitude_bins", 2, kMaxBins,
                                                         "strengths to choose from, 2 to 1,000."),
                         HowPixelsMove<&T::interpolation>(), FillOfPolicy<&T::fill>()}};
}

// With 3 numbers for each operation, at most as many as a stream of random numbers has.
constexpr int kMostChains = 32;

TransformRow Row(const AugMix&) {
  using T = AugMix;
  return {
      .name = "AugMix",
      .doc =
          "The image, mixed with copies that chains of random operations have changed. "
          "(Hendrycks et al., ICLR 2020)\n\n"
          "Masks, boxes and keypoints stay where they are in the image.",
      .acts_on = ActsOn::kPixels,
      .draws = 24,
      .parameters =
          {Integer<&T::severity>("severity", 1, 10, "the strongest of 10 strengths, 1 to 10."),
           Integer<&T::mixture_width>("mixture_width", 1, kMostChains, "how many copies, 1 to 32."),
           Integer<&T::chain_depth>("chain_depth", -1, kMostChains,
                                    "operations of each copy, up to 32; 0 or -1: 1 to 3, drawn "
                                    "for each."),
           Single<&T::alpha>("real", {.name = "alpha", .low = kMinAlpha, .high = kMaxAlpha},
                             "of the Dirichlet and Beta distributions of the weights."),
           Boolean<&T::all_ops>("all_ops",
                                "False leaves brightness, contrast, colour and sharpness out."),
           HowPixelsMove<&T::interpolation>(), FillOfPolicy<&T::fill>()},
      .own_memory = [](const Transform&, ImageSize tile) -> uint64_t {
        return Augmenter::MixBytes(tile);
      }};
}

// ---- Transforms that hold others.

std::string TextOfTransforms(const Transform& transform) {
  std::string text;
  for (const Transform& held : *HeldBy(transform)) {
    text += (text.empty() ? "" : ", ") + TextOf(held);
  }
  return text;
}

// Whether a transform, or one that it holds, changes the size of images.
bool ChangesSize(const Transform& transform) {
  if (const std::vector<Transform>* held = HeldBy(transform)) {
    return std::ranges::any_of(*held, &ChangesSize);
  }
  return RowOf(transform).acts_on == ActsOn::kGeometry && !RowOf(transform).keeps_size;
}

Check CheckHeld(const Transform& transform, DType dtype) {
  if (DepthOf(transform) > kMaxTransformDepth) {
    return Refusal{"it is nested more than " + std::to_string(kMaxTransformDepth) + " levels deep",
                   "Use fewer levels"};
  }
  if (ChangesSize(transform) && ChangesPixels(transform)) {
    return Refusal{"it holds transforms that resize, crop or pad, and others that change pixels",
                   "Hold each kind by itself"};
  }
  const std::vector<Transform>& held = *HeldBy(transform);
  for (size_t i = 0; i < held.size(); ++i) {
    Check check =
        CanBeHeld(RowOf(held[i]))
            ? CheckTransform(held[i], dtype)
            : Refusal{std::string(NameOf(transform)) + " does not hold transforms of this kind",
                      "Hold transforms that change pixels or resize, crop and pad, flips, and "
                      "other RandomApply, RandomChoice and RandomOrder"};
    if (!check) continue;
    check->cause =
        "transforms[" + std::to_string(i) + "], " + NameOf(held[i]) + ": " + check->cause;
    return check;
  }
  return {};
}

Check CheckChoice(const Transform& transform, DType dtype) {
  if (Check check = CheckHeld(transform, dtype)) return check;
  const auto& [transforms, p] = std::get<RandomChoice>(transform);
  if (transforms.empty()) return Refusal{"it holds no transforms", "Give at least one"};
  if (const auto wrong = CheckWeights(p, transforms.size())) {
    return Refusal{*wrong, "Give p as one weight for each transform, or leave it out"};
  }
  return {};
}

// The list is read by code of its own.
static_assert(kMaxTransformDepth == 8);  // as the texts say
Parameter HeldTransforms() {
  return {.name = "transforms",
          .kind = "transforms",
          .doc =
              "a list of transforms that change pixels (colour, blur, affine transforms and "
              "policies), or of those that resize, crop and pad (not in `RandomOrder`); flips; and "
              "other `RandomApply`, `RandomChoice` and `RandomOrder`, up to 8 levels deep.",
          .options = {{{.name = "transforms",
                        .required = true,
                        .note = "a list of flips, of transforms that change pixels (`ColorJitter` "
                                "to `AugMix`) or resize, crop and pad (not in "
                                "`RandomOrder`), and of `RandomApply`, `RandomChoice` and "
                                "`RandomOrder`, up to 8 levels deep"},
                       nullptr}},
          .text = &TextOfTransforms};
}

Check CheckOrder(const Transform& transform, DType dtype) {
  if (!ChangesSize(transform)) return CheckHeld(transform, dtype);
  return Refusal{
      "it holds transforms that resize, crop or pad, and images would depend on their "
      "order",
      "Give them in one order, in the list or a RandomApply"};
}

constexpr const char* kHowHeld =
    "what it holds decides which pixels are decoded, and in which "
    "order rows are written";

TransformRow Row(const RandomApply&) {
  return {.name = "RandomApply",
          .doc = "All of `transforms` with probability `p`, otherwise none of them.",
          .acts_on = ActsOn::kPixels,
          .draws = 8,
          .how = kHowHeld,
          .parameters = {HeldTransforms(), Probability<&RandomApply::p>()},
          .check = &CheckHeld};
}

TransformRow Row(const RandomChoice&) {
  return {.name = "RandomChoice",
          .doc =
              "One of `transforms`, drawn for each image.\n\n"
              "At the end of a loader's list it draws one of 1 to 16 `MixUp` and `CutMix` for each "
              "batch; those that give `num_classes` give the same.",
          .acts_on = ActsOn::kPixels,
          .draws = 14,
          .how = kHowHeld,
          .parameters = {HeldTransforms(),
                         Single<&RandomChoice::p>(
                             "weights",
                             {.name = "p",
                              .note = "a weight for each transform, of any positive sum; "
                                      "with `[]`, all have the same"},
                             "their weights, of any positive sum; None means all the "
                             "same.")},
          .check = &CheckChoice};
}

TransformRow Row(const RandomOrder&) {
  return {.name = "RandomOrder",
          .doc = "All of `transforms`, in random order.",
          .acts_on = ActsOn::kPixels,
          .draws = 15,
          .how = kHowHeld,
          .parameters = {HeldTransforms()},
          .check = &CheckOrder};
}

Check CheckErasing(const Transform& transform, DType dtype) {
  const auto& t = std::get<RandomErasing>(transform);
  if (t.noise && dtype == DType::kU8) {
    return Refusal{"value = \"random\": normal numbers do not fit uint8",
                   "Ask for dtype float32, float16 or bfloat16, or give numbers"};
  }
  // The limit is far below the largest value of any dtype, even when the value is normalized.
  const float least = dtype == DType::kU8 ? 0 : -kMaxValue;
  const float most = dtype == DType::kU8 ? 255 : kMaxValue;
  for (const float value : t.value) {
    if (value >= least && value <= most) continue;
    return Refusal{"value = " + NumberText(value) + " does not fit " + NameOf(dtype),
                   "Give values between " + NumberText(least) + " and " + NumberText(most)};
  }
  return {};
}

TransformRow Row(const RandomErasing&) {
  using T = RandomErasing;
  return {
      .name = "RandomErasing",
      .doc = "A random box gets `value`, with probability `p`. (Zhong et al., AAAI 2020)",
      .acts_on = ActsOn::kValues,
      .how = "a box of the finished row is overwritten",
      .parameters =
          {Probability<&T::p>(),
           Range<&T::scale>("scale", 0, 1, "(least, most) of the image's area, as a share of it."),
           Range<&T::ratio>("ratio", kMinRatio, kMaxSidePixels,
                            "(least, most) of height / width, drawn log-uniformly."),
           {.name = "value",
            .kind = "value or noise",
            .doc = "a number, or one for each channel, or \"random\": normal numbers of mean 0 "
                   "and deviation 1. Values are those of the output: 0 to 255 with "
                   "dtype=\"uint8\" (which \"random\" does not fit), fractions with the others; "
                   "a `Normalize` after it normalises them.",
            .options = {OptionOf<&T::value>({.name = "value"}),
                        OptionOf<&T::noise>(
                            {.name = "noise", .note = "normal numbers, without `value`"})},
            .text =
                [](const Transform& transform) {
                  const auto& t = std::get<T>(transform);
                  if (t.noise) return std::string("noise");
                  if (t.value == T().value) return std::string();
                  auto value = t.value;
                  return "value " + TextOf(OptionInfo(), &value);
                }}},
      .check = &CheckErasing};
}

Check CheckPadTo(const Transform& transform, DType /*dtype*/) {
  const auto& t = std::get<PadTo>(transform);
  if (t.multiple == 0) {
    for (const auto& [name, side] : {std::pair("height", t.height), std::pair("width", t.width)}) {
      const OptionInfo info{.name = name, .unit = kPixels};
      if (Check check = CheckInteger(info, side, 1, kMaxSidePixels)) return check;
    }
    return {};
  }
  if (t.height == 0 && t.width == 0) return {};
  return Refusal{"multiple = " + std::to_string(t.multiple) + " together with height = " +
                     std::to_string(t.height) + ", width = " + std::to_string(t.width),
                 "Give multiple, for rows of each batch's largest image, or height and width"};
}

TransformRow Row(const PadTo&) {
  using T = PadTo;
  const auto side = [](const char* name) {
    return OptionInfo{.name = name,
                      .low = 0,
                      .high = kMaxSidePixels,
                      .unit = kPixels,
                      .note = "without `multiple` at least 1"};
  };
  return {
      .name = "PadTo",
      .doc =
          "Images keep their sizes, up to height × width: a batch has rows of that size, with the "
          "image in the top left corner, and a column `image_size`.\n\n"
          "After `Normalize` the rest of a row is zero, as torchvision's detection models pad; "
          "before it, `fill` is normalised as pixels are. An image that is larger is an error of "
          "its sample; `Resize` with `max_size` makes none.\n\n"
          "With `\"batch\"`, rows are as large as their batch's images need: each batch has a "
          "shape "
          "of its own. The transforms before it must limit the size, as `Resize` with `max_size` "
          "does; the memory of a batch is that of rows of the largest possible size.",
      .acts_on = ActsOn::kValues,
      .how = "the part of the row that is not of the image is written",
      .parameters =
          {{.name = "size",
            .kind = "sides or batch",
            .doc = "of rows: an int (a square), or (height, width), or \"batch\": the largest "
                   "height and the largest width of a batch's images.",
            .options = {OptionOf<&T::height>(side("height")), OptionOf<&T::width>(side("width"))},
            .text =
                [](const Transform& transform) {
                  const auto& t = std::get<T>(transform);
                  return t.multiple != 0 ? "the batch's largest" : SizeText(t.height, t.width);
                }},
           FillOf<&T::fill>("as for `Pad`; with dtypes of fractions it becomes one, as pixels do."),
           Single<&T::multiple>("optional side",
                                {.name = "multiple",
                                 .low = 0,
                                 .high = kMaxSidePixels,
                                 .note = "without `height` and `width`: rows of each batch's "
                                         "largest image, rounded up to it"},
                                "with \"batch\": both sides are rounded up to a multiple of it; "
                                "None means 32, as torchvision's models pad.")},
      .check = &CheckPadTo};
}

// ---- Transforms of objects.

constexpr double kMaxArea = 1e8;

TransformRow Row(const SanitizeBoundingBoxes&) {
  using T = SanitizeBoundingBoxes;
  return {.name = "SanitizeBoundingBoxes",
          .doc =
              "Objects whose box is too small, is not a number or lies outside the image are "
              "dropped, with their keypoints and values.\n\n"
              "A box may be up to 0.001 pixels outside, because of roundings, and is then clamped.",
          .acts_on = ActsOn::kObjects,
          .draws = kDrawsNothing,
          .how = "on the boxes, before the image is decoded",
          .parameters = {
              Single<&T::min_size>("real", {.name = "min_size", .low = 1, .high = kMaxSidePixels},
                                   "the least width and height in pixels, at least 1."),
              Single<&T::min_area>("real", {.name = "min_area", .low = 1, .high = kMaxArea},
                                   "the least area in pixels, at least 1.")}};
}

TransformRow Row(const ClampBoundingBoxes&) {
  return {.name = "ClampBoundingBoxes",
          .doc =
              "Boxes are clamped to the image, and keypoints outside of it are hidden.\n\n"
              "Crops, padding and affine transforms do so, too.",
          .acts_on = ActsOn::kObjects,
          .draws = kDrawsNothing,
          .how = "on the boxes, before the image is decoded"};
}

TransformRow Row(const ConvertBoundingBoxFormat&) {
  using T = ConvertBoundingBoxFormat;
  Parameter format =
      ChoiceOf<&T::format>("format",
                           {{NameOf(BoxFormat::kXyxy), BoxFormat::kXyxy},
                            {NameOf(BoxFormat::kXywh), BoxFormat::kXywh},
                            {NameOf(BoxFormat::kCxcywh), BoxFormat::kCxcywh}},
                           "\"xyxy\", \"xywh\" or \"cxcywh\", or torchvision's BoundingBoxFormat.");
  format.kind = "box format";
  format.options[0].required = true;
  return {.name = "ConvertBoundingBoxFormat",
          .doc =
              "Batches have boxes in this format, not in that of the source; after all transforms "
              "that move pixels.",
          .acts_on = ActsOn::kObjects,
          .draws = kDrawsNothing,
          .how = "when boxes are written",
          .parameters = {std::move(format),
                         Boolean<&T::normalized>(
                             "normalized",
                             "as shares of the image's width and height, not in pixels; after "
                             "`PadTo`, of the row's.")}};
}

// ---- Copied objects.

TransformRow Row(const CopyPaste&) {
  using T = CopyPaste;
  return {
      .name = "CopyPaste",
      .doc =
          "Objects are pasted onto the image, with their boxes, keypoints, masks and values, which "
          "follow those of the others, as by Ultralytics' `CopyPaste`: the image's own, mirrored "
          "left and right, or those of another image.\n\n"
          "An object can be pasted if its box covers less than 30 % of each box of the image; an "
          "image without objects stays as it is. Samples must have boxes, and masks that are drawn "
          "from polygons or RLE, in which "
          "pasted objects are on top. Hidden objects keep their boxes. A batch has room for twice "
          "the most objects of a sample; of more than 127 in one image, ask for masks of uint16. "
          "More than 8,192 objects, of both images together, are an error of the sample.\n\n"
          "Directly after a `Mosaic` it pastes onto the canvas of the images, before a row is cut "
          "out of it. These numbers are then those of the images together, and a batch has room "
          "for twice as many times the most objects of a sample as after the `Mosaic` alone.",
      .acts_on = ActsOn::kPixels,
      .draws = kDrawsNothing,
      .parameters = {
          Single<&T::p>("real", {.name = "p", .low = 0, .high = 1},
                        "0 to 1: the share that is pasted of the objects that can be; "
                        "those that cover least come first."),
          ChoiceOf<&T::mode>(
              "mode", {{"flip", T::Mode::kFlip}, {"mixup", T::Mode::kMixup}},
              "\"flip\": the image's own objects, mirrored; \"mixup\": those of another "
              "image, which is drawn from all samples of the source and changed by the "
              "transforms before this one, with draws of its own. Not after a `Mosaic`.")}};
}

// ---- Several images.

constexpr int kMostMosaic = kMaxSidePixels / 2;  // images are scaled to less than twice this

TransformRow Row(const Mosaic&) {
  using T = Mosaic;
  return {
      .name = "Mosaic",
      .doc =
          "A square of four images, or of nine: the sample's own, and others drawn from all "
          "samples of the source. (Bochkovskiy et al., 2020)\n\n"
          "First in a loader's list, it gives rows their size; no transform after it crops or "
          "resamples. The images are scaled so that their longer sides are `size`, and meet at a "
          "random point in the middle half of a canvas of twice the size. A row is a random window "
          "of the canvas. Each image is decoded where it is visible, resampled once, and written "
          "to its place in the row. With `degrees`, `shear` or `perspective` it is then turned, "
          "which resamples it again. With n = 9, images do not meet at that point: the upper left "
          "corner of the sample's own is a quarter of the canvas from its edges, and eight lie "
          "around "
          "it.\n\n"
          "Batches have the objects of all of them, in the order of the images, with boxes "
          "clamped. "
          "Objects are dropped if their boxes have a side of at most 2 pixels, sides in a ratio "
          "of at least 100, or at most a tenth of the area that they had on the canvas. If masks "
          "are drawn, objects with polygons have the polygons' boxes, and are dropped at a "
          "hundredth. Samples with objects must have boxes. Other columns are those of the sample "
          "itself.",
      .how =
          "each of the images is decoded where it is visible, or may be pasted, and resampled "
          "to its place",
      .parameters = {
          Single<&T::size>(
              "integer",
              {.name = "size", .required = true, .low = 1, .high = kMostMosaic, .unit = kPixels},
              "height and width of rows, an int."),
          Single<&T::scale>("real", {.name = "scale", .low = 0, .high = 0.9},
                            "0 to 0.9: the window is scaled by a factor uniform between 1 - scale "
                            "and 1 + scale."),
          Single<&T::translate>("real", {.name = "translate", .low = 0, .high = 1},
                                "0 to 1: the window is moved by up to this share of `size`, along "
                                "each axis."),
          FillOf<&T::fill>("where there is no image: an int 0 to 255, or (red, green, blue)."),
          Probability<&T::p>(
              "of several images, 0 to 1; otherwise the sample's own alone is in the "
              "middle, and all else likewise."),
          Single<&T::degrees>("real", {.name = "degrees", .low = 0, .high = 180},
                              "0 to 180: the images are turned by up to as many, either way."),
          Single<&T::shear>("real", {.name = "shear", .low = 0, .high = 30},
                            "0 to 30 degrees: the images are sheared by up to as many, along each "
                            "axis and either way."),
          Single<&T::perspective>(
              "real", {.name = "perspective", .low = 0, .high = 0.01},
              "0 to 0.01: distances from the canvas's middle are divided by 1 plus up to this "
              "much for each pixel from it, along each axis and either way."),
          Single<&T::n>("integer", {.name = "n", .low = 4, .high = 9, .step = 5},
                        "images of a row: 4, or 9, of which eight lie around the sample's own, as "
                        "by Ultralytics' mosaic of nine.")}};
}

// ----

template <size_t... places>
std::vector<TransformRow> MakeTable(std::index_sequence<places...> /*of the variant*/) {
  std::vector<TransformRow> table{Row(std::variant_alternative_t<places, AnyTransform>())...};
  ((table[places].standard = std::variant_alternative_t<places, AnyTransform>()), ...);
  return table;
}

// Calls visit(option) for each option of the transform that has a place.
template <typename Visit>
void ForEachOption(const TransformRow& row, const Visit& visit) {
  for (const Parameter& parameter : row.parameters) {
    for (const Option<Transform>& option : parameter.options) {
      if (option.in != nullptr) visit(option);
    }
  }
}

// Returns an empty text for a parameter that has its default.
std::string TextOf(const Parameter& parameter, const Transform& transform) {
  if (parameter.text != nullptr) return parameter.text(transform);
  Transform given = transform, standard = RowOf(transform).standard;
  std::string texts;
  for (const Option<Transform>& option : parameter.options) {
    const std::string text = TextOf(option, option.in(given));
    if (text == TextOf(option, option.in(standard))) continue;
    texts += (texts.empty() ? "" : ", ") + (option.name + (" " + text));
  }
  return texts;
}

// Checks that the option is below the one that it names.
Check CheckBelow(const TransformRow& row, Transform& transform, const Option<Transform>& option) {
  Check check;
  ForEachOption(row, [&](const Option<Transform>& other) {
    if (option.below == nullptr || std::string_view(option.below) != other.name) return;
    check =
        CheckInteger(option, *std::get<int*>(option.in(transform)),
                     static_cast<int64_t>(option.low), *std::get<int*>(other.in(transform)) - 1);
  });
  return check;
}

}  // namespace

std::span<const TransformRow> AllTransforms() {
  static const std::vector<TransformRow> table =
      MakeTable(std::make_index_sequence<std::variant_size_v<AnyTransform>>());
  return table;
}

const TransformRow& RowOf(const Transform& transform) { return AllTransforms()[transform.index()]; }

const char* NameOf(const Transform& transform) { return RowOf(transform).name; }

const std::vector<Transform>* HeldBy(const Transform& transform) {
  return ListIn<const std::vector<Transform>>(transform);
}
std::vector<Transform>* HeldBy(Transform& transform) {
  return ListIn<std::vector<Transform>>(transform);
}

bool CanBeHeld(const TransformRow& row) {
  return row.acts_on == ActsOn::kPixels ||
         (row.acts_on == ActsOn::kGeometry && !std::holds_alternative<Mosaic>(row.standard));
}

std::optional<ResamplingFilter> FilterOf(const Transform& transform) {
  return std::visit(
      [](const auto& t) -> std::optional<ResamplingFilter> {
        if constexpr (requires { t.antialias; }) {
          return ResamplingFilter{t.antialias, t.interpolation, t.resampler};
        }
        return std::nullopt;
      },
      static_cast<const AnyTransform&>(transform));
}

bool TakesSamples(const Transform& transform) {
  if (const std::vector<Transform>* held = HeldBy(transform)) {
    return std::ranges::any_of(*held, &TakesSamples);
  }
  const auto* const paste = std::get_if<CopyPaste>(&transform);
  return std::holds_alternative<Mosaic>(transform) ||
         (paste != nullptr && paste->mode == CopyPaste::Mode::kMixup);
}

uint8_t DrawsOf(const Transform& transform) {
  return AnyActsOn(ActsOn::kGeometry, transform) ? 0 : RowOf(transform).draws;
}

bool ChangesPixels(const Transform& transform) { return AnyActsOn(ActsOn::kPixels, transform); }

size_t CountOf(std::span<const Transform> transforms) {
  size_t count = transforms.size();
  for (const Transform& transform : transforms) {
    if (const std::vector<Transform>* held = HeldBy(transform)) count += CountOf(*held);
  }
  return count;
}

std::string TextOf(const Transform& transform) {
  std::string parameters;
  for (const Parameter& parameter : RowOf(transform).parameters) {
    const std::string text = TextOf(parameter, transform);
    if (!text.empty()) parameters += (parameters.empty() ? "" : ", ") + text;
  }
  return std::string(NameOf(transform)) + (parameters.empty() ? "" : "(" + parameters + ")");
}

Status CheckPixelType(DType dtype) {
  if (IsPixelType(dtype) || dtype == DType::kU16) return {};
  return Error{.code = Code::kInvalidArgument,
               .cause = std::string("dtype is ") + NameOf(dtype) + ", which images cannot be",
               .advice = "Use uint8, uint16, float16, bfloat16 or float32"};
}

std::optional<Refusal> CheckForGray(const Transform& transform) {
  Transform values = transform;  // options point into it
  Check check;
  ForEachOption(RowOf(transform), [&](const Option<Transform>& option) {
    const bool differs = std::visit(
        [](const auto& value) {
          using Value = std::remove_cvref_t<decltype(value)>;
          if constexpr (std::is_same_v<Value, Fill*> ||
                        std::is_same_v<Value, std::array<float, 3>*>) {
            return (*value)[0] != (*value)[1] || (*value)[0] != (*value)[2];
          } else if constexpr (std::is_same_v<Value, std::vector<float>*>) {
            return std::ranges::adjacent_find(*value, std::not_equal_to()) != value->end();
          } else if constexpr (std::is_same_v<Value, std::optional<Fill>*>) {
            return *value && ((**value)[0] != (**value)[1] || (**value)[0] != (**value)[2]);
          } else {
            return false;
          }
        },
        option.in(values));
    if (!differs || check) return;
    check = Refusal{std::string(option.name) + " differs by channel, and images are gray",
                    "Give the same number for each channel"};
  });
  const std::vector<Transform>* const held = HeldBy(transform);
  for (size_t i = 0; held != nullptr && i < held->size() && !check; ++i) {
    check = CheckForGray((*held)[i]);
  }
  return check;
}

std::optional<Refusal> CheckTransform(const Transform& transform, DType dtype) {
  const TransformRow& row = RowOf(transform);
  Transform values = transform;  // options point into it
  Check check;
  ForEachOption(row, [&](const Option<Transform>& option) {
    if (!check) check = CheckOption(option, option.in(values));
  });
  ForEachOption(row, [&](const Option<Transform>& option) {
    if (!check) check = CheckBelow(row, values, option);
  });
  if (!check) check = CheckFilter(FilterOf(transform), dtype);
  if (check) return check;
  return row.check == nullptr ? std::nullopt : row.check(transform, dtype);
}

}  // namespace stoker
