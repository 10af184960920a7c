// Draws the geometry of transforms, by torchvision's definitions and bit-exact on every machine.
//
// Uses only IEEE additions, multiplications, divisions and square roots: the C library's
// exponential and logarithm differ in the last bit between CPUs.
#pragma once

#include <optional>
#include <span>

#include "core/batch/image.h"
#include "core/numbers/random.h"
#include "transforms/spec/transform.h"

namespace stoker {

struct Box;

// e^x for |x| <= 700; relative error below 1e-15.
double Exp(double x);
inline constexpr double kPi = 0x1.921fb54442d18p+1;
// Sine of |x| <= 100; absolute error below 1e-15.
double Sin(double x);

// Python's round() for values below 2^52: ties to even.
double RoundHalfEven(double value);

// The most that a side has after a resize: padding of it does not overflow.
inline constexpr int kMaxDrawnSide = 1 << 30;

// Returns the size after a Resize. Sides are at most kMaxDrawnSide.
ImageSize SizeAfter(const Resize& resize, ImageSize image);

// Draws the size after a RandomShortestSize like torchvision's make_params. Sides are between 1 and
// kMaxDrawnSide.
ImageSize DrawShortestSize(const RandomShortestSize& resize, ImageSize image, RandomStream& random);
// Does the same for a ScaleJitter, in single precision, as torchvision.
ImageSize DrawScaledSize(const ScaleJitter& jitter, ImageSize image, RandomStream& random);

// Returns the central box of an image. A larger crop extends outside the image on both sides, as
// torchvision pads: the odd pixel of padding goes to the right and the bottom.
Rect CenterBox(ImageSize crop, ImageSize image);

// Whether all of `inner` lies in `outer`.
bool Contains(const Rect& outer, const Rect& inner);

// Draws a box like torchvision's RandomResizedCrop.get_params: up to ten attempts of two uniform
// numbers (area, ratio), then two integers for the attempt that fits (row, column); or the central
// fallback.
Rect DrawResizedBox(const RandomResizedCrop& crop, ImageSize image, RandomStream& random);

// Draws a part of the image like torchvision's RandomIoUCrop.make_params. Returns nullopt if the
// image stays whole.
std::optional<Rect> DrawIoUCrop(const RandomIoUCrop& crop, ImageSize image,
                                std::span<const Box> boxes, RandomStream& random);
// Whether the center of the box lies in the part, and not on its border.
bool HasCenterIn(const Rect& part, const Box& box);

// Returns (value − mean) / std for each channel.
std::array<float, 3> Normalized(const std::array<float, 3>& value, const Normalize& by);

// Draws a box like torchvision's RandomErasing.make_params, in the same way; empty if no attempt
// fits, i.e. none is smaller than the image in height and width.
Rect DrawErasedBox(const RandomErasing& erasing, ImageSize image, RandomStream& random);

}  // namespace stoker
