// Transforms as a user requests them: torchvision's names and meanings, as plain values. A Plan
// compiles a list of them; transform_table.h has the allowed values of each member.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "core/batch/box_format.h"
#include "transforms/spec/fill.h"
#include "transforms/spec/interpolation.h"

namespace stoker {

// Limits of one loader: on transforms, over all views and including nested ones (its states name
// them all); on the depth of nesting, including the outermost; and on views.
inline constexpr size_t kMaxTransforms = 256;
inline constexpr size_t kMaxTransformDepth = 8;
inline constexpr size_t kMaxViews = 64;

// All images are RGB with 8 bits a channel; gray images get three equal channels. Sizes are in
// pixels.

// With `size` > 0 the shorter side becomes `size` and the longer one int(size × long / short). If
// that is more than max_size > 0, the longer side becomes max_size and the shorter one int(max_size
// × short / long) of these, at least 1. With `size` == 0 the image becomes exactly width × height;
// without those, its longer side becomes max_size. antialias: the filter widens when shrinking, as
// in Pillow and torchvision; without it, the filter keeps its width (bilinear: two taps), as in
// tf.image.resize. kNearest never widens. resampler: see ResampledAs.
struct Resize {
  int size = 0;
  int height = 0;
  int width = 0;
  bool antialias = true;
  Interpolation interpolation = Interpolation::kBilinear;
  int max_size = 0;
  ResampledAs resampler = ResampledAs::kPillow;
};

// Takes the middle height × width pixels, with offsets rounded half to even; an image that is too
// small is padded with zeros.
struct CenterCrop {
  int height = 0;
  int width = 0;
};

// Takes a box of random area (a share of the image's in `scale`) and aspect ratio (width / height,
// log-uniform in `ratio`) at a uniform place, resized to height × width; after ten attempts that do
// not fit, the largest central box within `ratio`. The box is cut before it is resized.
struct RandomResizedCrop {
  int height = 0;
  int width = 0;
  std::array<double, 2> scale{0.08, 1.0};
  std::array<double, 2> ratio{3.0 / 4.0, 4.0 / 3.0};
  bool antialias = true;
  Interpolation interpolation = Interpolation::kBilinear;
  ResampledAs resampler = ResampledAs::kPillow;
};

struct Pad {
  Margins padding;
  Fill fill{};
  Padding padding_mode = Padding::kConstant;
};

// Takes height × width pixels at a uniform place, after padding. A smaller image is an error; with
// pad_if_needed it is first padded, on both sides, by the whole missing size.
struct RandomCrop {
  int height = 0;
  int width = 0;
  Margins padding{};
  bool pad_if_needed = false;
  Fill fill{};
  Padding padding_mode = Padding::kConstant;
};

// Takes a part of random size at a uniform place: each side is uniform between min_size and
// max_size pixels, but at most the image's. `square`: one number for both sides, at most the
// image's shorter one. (Carion et al.: "End-to-End Object Detection with Transformers", ECCV 2020)
struct RandomSizeCrop {
  int min_size = 0;
  int max_size = 0;
  bool square = false;
};

// With probability p puts the image at a uniform place of a larger one, whose sides are its own
// times one number uniform in `side_range`, but at most 65,535 pixels, and fills the rest.
struct RandomZoomOut {
  Fill fill{};
  std::array<double, 2> side_range{1, 4};
  double p = 0.5;
};

// Takes a part of the image whose overlap (intersection / union) with at least one of the boxes is
// at least a number drawn from sampler_options, and drops objects whose center is not in it.
// Samples must have boxes. sampler_options: each at least 0; empty means {0, 0.1, 0.3, 0.5, 0.7,
// 0.9, 1}, and from 1 on the image stays whole, as it does without objects. Width and height are
// shares of the image's, each uniform between min_scale and max_scale, of a ratio width / height
// within min_aspect_ratio and max_aspect_ratio, at a uniform place; after `trials` of them another
// number is drawn, and after 20 numbers the image stays whole. (Liu et al.: "SSD: Single Shot
// MultiBox Detector", ECCV 2016)
struct RandomIoUCrop {
  double min_scale = 0.3;
  double max_scale = 1;
  double min_aspect_ratio = 0.5;
  double max_aspect_ratio = 2;
  std::vector<double> sampler_options{};
  int trials = 40;
};

// Resizes the image so that its shorter side becomes one of `min_size`, which must not be empty,
// each as likely as the others; or, if the longer side would be more than max_size > 0, so that the
// longer one becomes max_size. Sides are truncated as torchvision does, and are at least 1.
struct RandomShortestSize {
  std::vector<int> min_size{};
  int max_size = 0;
  Interpolation interpolation = Interpolation::kBilinear;
  bool antialias = true;
  ResampledAs resampler = ResampledAs::kPillow;
};

// Resizes the image to the largest size within width × height, times one number uniform in
// scale_range. Sides are truncated as torchvision does, and are at least 1. (Ghiasi et al.: "Simple
// Copy-Paste is a Strong Data Augmentation Method for Instance Segmentation", CVPR 2021)
struct ScaleJitter {
  int width = 0;
  int height = 0;
  std::array<double, 2> scale_range{0.1, 2};
  Interpolation interpolation = Interpolation::kBilinear;
  bool antialias = true;
  ResampledAs resampler = ResampledAs::kPillow;
};

// First in a list: makes a row of size × size pixels of n images, 4 or 9: the sample's own, and
// others drawn from all samples, each as likely as any. Scaled so that their longer sides are
// `size`, four meet at one point of a canvas of twice the size, uniform in its middle half along
// each axis: the own image above and to the left of it, then to the right, below, and both. Of
// nine, eight lie around the own one, whose upper left corner is a quarter of the canvas from its
// edges, clockwise from above. The row is a window of the canvas, which is turned about its middle
// by ± degrees, sheared by ± shear degrees along both axes (of which the product of the tangents is
// below 1, so that no row is mirrored), scaled by 1 ± scale and moved by ± translate, shares of
// `size`. Before it is turned, the point (x, y) of the canvas, from its middle, is divided by 1 +
// ax + by, with a and b in ± perspective, weakened alike if that would be below 0.1 on the canvas
// or over 10 in the row. With probability 1 − p the own image is alone, in the middle.
//
// Objects are those of all images, with boxes clamped to the canvas and then to the row; or, with
// shapes that are polygons, with the boxes of these in the row. They are dropped if their
// boxes have a side of at most 2 pixels, sides in a ratio of at least 100, or at most a tenth (of
// polygons a hundredth) of the area that they had on the canvas. Samples with objects must have
// boxes. (Bochkovskiy et al.: "YOLOv4: Optimal Speed and Accuracy of Object Detection", 2020)
struct Mosaic {
  int size = 0;
  double scale = 0.5;
  double translate = 0.1;
  Fill fill{114, 114, 114};  // where no image is
  double p = 1;
  double degrees = 0;
  double shear = 0;
  double perspective = 0;
  int n = 4;
};

// Swaps left and right with probability p.
struct RandomHorizontalFlip {
  double p = 0.5;
};

// Swaps top and bottom with probability p.
struct RandomVerticalFlip {
  double p = 0.5;
};

// ---- Transforms that change pixels of an image of final size, on 8 bits a channel.

// With probability p applies brightness, contrast and saturation factors and a hue shift, each
// uniform between (least, most), in random order. A factor of {1, 1} and a hue of {0, 0} are left
// out.
struct ColorJitter {
  std::array<double, 2> brightness{1, 1};
  std::array<double, 2> contrast{1, 1};
  std::array<double, 2> saturation{1, 1};
  std::array<double, 2> hue{0, 0};  // in turns, within −½…½
  double p = 1;
};

// SSD's distortion: applies brightness, contrast, saturation and hue, each with probability p of
// its own and uniform between (least, most); contrast comes second or last, with probability ½.
// Then, with probability p, puts the channels in a random order.
struct RandomPhotometricDistort {
  std::array<double, 2> brightness{0.875, 1.125};
  std::array<double, 2> contrast{0.5, 1.5};
  std::array<double, 2> saturation{0.5, 1.5};
  std::array<double, 2> hue{-0.05, 0.05};  // in turns, within −½…½
  double p = 0.5;
};

// Turns the hue by a shift, and multiplies saturation and value of the HSV hexcone by factors, each
// uniform between (least, most).
struct RandomHSV {
  std::array<double, 2> hue{-0.015, 0.015};  // in turns, within −½…½
  std::array<double, 2> saturation{0.3, 1.7};
  std::array<double, 2> value{0.6, 1.4};
};

// Makes the image gray with probability p: three equal channels.
struct RandomGrayscale {
  double p = 0.1;
};

// Inverts the values that are at least `threshold`, with probability p.
struct RandomSolarize {
  double threshold = 0;
  double p = 0.5;
};

// Inverts all values with probability p.
struct RandomInvert {
  double p = 0.5;
};

// Keeps the `bits` high bits of each value and clears the others, with probability p.
struct RandomPosterize {
  int bits = 8;
  double p = 0.5;
};

// Blends the image with a smoothed copy of it, with probability p: a sharpness_factor of 0 is the
// smoothed copy, 1 the image, and 2 is twice as sharp.
struct RandomAdjustSharpness {
  double sharpness_factor = 1;
  double p = 0.5;
};

// Stretches each channel to 0…255 with probability p.
struct RandomAutocontrast {
  double p = 0.5;
};

// Equalizes the histogram of each channel with probability p.
struct RandomEqualize {
  double p = 0.5;
};

// With probability p applies a Gaussian of kernel_height × kernel_width taps (both odd) with σ
// uniform in `sigma`, the same for both axes.
struct GaussianBlur {
  int kernel_height = 0;
  int kernel_width = 0;
  std::array<double, 2> sigma{0.1, 2.0};
  double p = 1;
};

// Affine transforms draw one map of positions about the center of an image, which keeps its size,
// and sample the image once. `padding_mode` determines pixels from outside the image.

// Rotates by an angle, clockwise, in degrees; moves by up to a share of the width and the height,
// in whole pixels; scales; and shears by angles along x and y. `center` is in pixels from the upper
// left corner; without one it is the middle. A fill, even a black one, is blended with the border
// once more by kBilinear, as torchvision does; without one it is black.
struct RandomAffine {
  std::array<double, 2> degrees{};
  double translate_x = 0;
  double translate_y = 0;
  std::array<double, 2> scale{1, 1};
  std::array<double, 2> shear_x{};
  std::array<double, 2> shear_y{};
  Interpolation interpolation = Interpolation::kNearest;
  std::optional<Fill> fill = Fill{};
  std::optional<double> center_x{};
  std::optional<double> center_y{};
  Padding padding_mode = Padding::kConstant;
};

// Rotates by an angle, counterclockwise, in degrees.
struct RandomRotation {
  std::array<double, 2> degrees{};
  Interpolation interpolation = Interpolation::kNearest;
  bool expand = false;  // true is refused: images would differ in size
  std::optional<double> center_x{};
  std::optional<double> center_y{};
  std::optional<Fill> fill = Fill{};
  Padding padding_mode = Padding::kConstant;
};

// Moves the corners inwards with probability p: each by up to distortion_scale times half of the
// width and of the height, in whole pixels; the map is the projective one that moves them so. An
// image whose corners are drawn onto a line stays as it is.
struct RandomPerspective {
  double distortion_scale = 0.5;
  double p = 0.5;
  Interpolation interpolation = Interpolation::kBilinear;
  std::optional<Fill> fill = Fill{};
};

// Moves the source position of each pixel by smooth noise: along each axis uniform in ±alpha / 2
// pixels, blurred by a Gaussian of deviation sigma pixels.
struct ElasticTransform {
  double alpha = 50;
  double sigma = 5;
  Interpolation interpolation = Interpolation::kBilinear;
  std::optional<Fill> fill = Fill{};
};

// These have names and arguments of Keras' layers.

// An output pixel comes from 1 + factor times its distance to the middle: a positive factor zooms
// out. Without a width_factor, that of the height is also the width's.
struct RandomZoom {
  std::array<double, 2> height_factor{};
  std::optional<std::array<double, 2>> width_factor{};
  Padding padding_mode = Padding::kSymmetric;
  Interpolation interpolation = Interpolation::kBilinear;
  Fill fill{};
};

// Moves down and to the right by shares of the height and the width, not rounded to pixels.
struct RandomTranslation {
  std::array<double, 2> height_factor{};
  std::array<double, 2> width_factor{};
  Padding padding_mode = Padding::kSymmetric;
  Interpolation interpolation = Interpolation::kBilinear;
  Fill fill{};
};

// An output pixel (x, y), from the first pixel, comes from (x + a y, b x + y), with a and b from
// x_factor and y_factor; both have the opposite sign with probability ½.
struct RandomShear {
  std::array<double, 2> x_factor{};
  std::array<double, 2> y_factor{};
  Interpolation interpolation = Interpolation::kBilinear;
  Padding padding_mode = Padding::kSymmetric;
  Fill fill{};
};

// Policies apply random operations of random strength. Pixels from outside the image are `fill`.
// Without a fill they are black; with one, even a black one, bilinear interpolation blends the
// image's border with it once more, as torchvision does.

// Applies one of 25 pairs of operations that were found by search. (Cubuk et al.: "AutoAugment:
// Learning Augmentation Strategies from Data", CVPR 2019)
struct AutoAugment {
  enum class Policy : uint8_t { kImageNet, kCifar10, kSvhn };
  Policy policy = Policy::kImageNet;
  Interpolation interpolation = Interpolation::kNearest;
  std::optional<Fill> fill{};
};

// Applies `num_ops` operations, each uniform among 14, of strength `magnitude` out of
// num_magnitude_bins. (Cubuk et al.: "RandAugment: Practical automated data augmentation with a
// reduced search space", CVPR Workshops 2020)
struct RandAugment {
  int num_ops = 2;
  int magnitude = 9;
  int num_magnitude_bins = 31;
  Interpolation interpolation = Interpolation::kNearest;
  std::optional<Fill> fill{};
};

// Applies one operation of 14, of a random strength out of num_magnitude_bins. (Müller, Hutter:
// "TrivialAugment: Tuning-free Yet State-of-the-Art Data Augmentation", ICCV 2021)
struct TrivialAugmentWide {
  int num_magnitude_bins = 31;
  Interpolation interpolation = Interpolation::kNearest;
  std::optional<Fill> fill{};
};

// Mixes the image with `mixture_width` copies, each changed by a chain of chain_depth operations,
// or of 1 to 3 if that is not positive, of strengths below `severity` out of 10. The weights of
// copies are Dirichlet(alpha, …) distributed, and the share of the image itself Beta(alpha, alpha).
// Masks and objects stay where they are in the image. (Hendrycks et al.: "AugMix: A Simple Data
// Processing Method to Improve Robustness and Uncertainty", ICLR 2020)
struct AugMix {
  int severity = 3;
  int mixture_width = 3;
  int chain_depth = -1;
  double alpha = 1;
  bool all_ops = true;
  Interpolation interpolation = Interpolation::kBilinear;
  std::optional<Fill> fill{};
};

// Pastes objects onto the image, with their boxes, keypoints, shapes and values: with kFlip the
// image's own, mirrored left and right, with kMixup those of another sample's image, to which the
// transforms before this one are applied with draws of its own. An object can be pasted if its
// (mirrored) box covers less than 0.3 of each box of the image, its own included, onto an image
// that has any; of those that can, the share p that covers least is chosen, rounded to a number.
// Objects whose box has no area are neither chosen nor in the way. Of the chosen ones, those that
// have no pixel are left out. Objects that are hidden then keep their boxes. Samples must have
// boxes and shapes. With kFlip directly after a Mosaic, its canvas is the image. (As CopyPaste of
// Ultralytics 8.4; the idea is that of Ghiasi et al.: "Simple Copy-Paste is a Strong Data
// Augmentation Method for Instance Segmentation", CVPR 2021, who paste objects of another image.)
struct CopyPaste {
  enum class Mode : uint8_t { kFlip, kMixup };
  double p = 0.5;
  Mode mode = Mode::kFlip;
};

// ---- Transforms that hold others: those that change pixels, or that resize, crop and pad (not in
// RandomOrder); flips; and each other.

struct Transform;

// Applies all of `transforms`, in their order, with probability p; otherwise none of them.
struct RandomApply {
  std::vector<Transform> transforms;
  double p = 0.5;
};

// Applies one of `transforms`, which must not be empty. `p` has their weights, with any positive
// sum; empty means equal weights.
struct RandomChoice {
  std::vector<Transform> transforms;
  std::vector<double> p{};
};

// Applies all of `transforms` in random order.
struct RandomOrder {
  std::vector<Transform> transforms;
};

// ---- Transforms that change values of the output.

// Computes (value / 255 − mean) / std for each channel; needs a floating-point dtype.
struct Normalize {
  std::vector<float> mean{0};  // one for each channel, or one for all
  std::vector<float> std{1};
};

inline float ChannelOf(const std::vector<float>& values, size_t channel) {
  return values.size() == 1 ? values[0] : values[channel];
}

// With probability p sets a box of random area (a share of the image's in `scale`) and aspect ratio
// (height / width, log-uniform in `ratio`) at a uniform place to `value`, or to normal noise of
// mean 0 and deviation 1; after ten attempts that do not fit, does nothing. Values are the
// output's: 0…255 for u8; for other dtypes fractions, which a later Normalize normalizes. (Zhong et
// al.: "Random Erasing Data Augmentation", AAAI 2020)
struct RandomErasing {
  double p = 0.5;
  std::array<double, 2> scale{0.02, 0.33};
  std::array<double, 2> ratio{0.3, 3.3};
  std::array<float, 3> value{};
  bool noise = false;  // instead of `value`
};

// Keeps the sizes of images, up to height × width: each image lies in the top left corner of a row
// of that size, and the rest, right of it and below, is `fill`. Batches then have a column of
// sizes, image_size. After a Normalize the rest is zero; before one, it is normalized like pixels.
// A larger image is an error.
//
// With `multiple`, and without height and width, rows have the size of their batch's largest image:
// its largest height and its largest width, each rounded up to a multiple of it. The transforms
// before it limit the size of images.
struct PadTo {
  int height = 0;
  int width = 0;
  Fill fill{};
  int multiple = 0;
};

// ---- Transforms of a sample's objects, which leave its pixels alone. Samples must have boxes.

// Drops objects whose box is narrower or lower than min_size pixels, has an area below min_area, is
// not a number, or lies outside the image by more than 0.001 pixels; one that is less than that
// outside is clamped.
struct SanitizeBoundingBoxes {
  double min_size = 1;
  double min_area = 1;
};

// Clamps boxes to the image, and hides keypoints outside of it.
struct ClampBoundingBoxes {};

// Says how boxes are written; without it, in the format in which they are read, in pixels. With
// `normalized`, as shares of the image's width and height: those of the row after a PadTo,
// otherwise its own.
struct ConvertBoundingBoxFormat {
  BoxFormat format = BoxFormat::kXyxy;
  bool normalized = false;
};

using AnyTransform =
    std::variant<Resize, CenterCrop, RandomResizedCrop, RandomHorizontalFlip, RandomVerticalFlip,
                 Pad, RandomCrop, RandomSizeCrop, RandomZoomOut, RandomIoUCrop, RandomShortestSize,
                 ScaleJitter, ColorJitter, RandomPhotometricDistort, RandomHSV, RandomGrayscale,
                 RandomSolarize, RandomInvert, RandomPosterize, RandomAdjustSharpness,
                 RandomAutocontrast, RandomEqualize, GaussianBlur, RandomAffine, RandomRotation,
                 RandomPerspective, RandomZoom, RandomTranslation, RandomShear, AutoAugment,
                 RandAugment, TrivialAugmentWide, AugMix, RandomApply, RandomChoice, RandomOrder,
                 Normalize, RandomErasing, PadTo, SanitizeBoundingBoxes, ClampBoundingBoxes,
                 ConvertBoundingBoxFormat, Mosaic, ElasticTransform, CopyPaste>;

// One of the above. A type of its own, so that a transform can hold others.
struct Transform : AnyTransform {
  using AnyTransform::AnyTransform;
};

const char* NameOf(const Transform& transform);  // "Resize", …

}  // namespace stoker
