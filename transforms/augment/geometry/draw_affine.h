// Draws the maps of affine, projective and elastic transforms: those of torchvision, and those of
// Keras' layers.
#pragma once

#include <array>

#include "core/batch/image.h"
#include "core/numbers/random.h"
#include "transforms/augment/step.h"
#include "transforms/spec/transform.h"

namespace stoker {

// Return the step for an image of `size`.
Affine DrawAffine(const RandomAffine& transform, ImageSize size, RandomStream& random);
Affine DrawAffine(const RandomRotation& transform, ImageSize size, RandomStream& random);
Affine DrawAffine(const RandomPerspective& transform, ImageSize size, RandomStream& random);
Affine DrawAffine(const ElasticTransform& transform, ImageSize size, RandomStream& random);
Affine DrawAffine(const RandomZoom& transform, ImageSize size, RandomStream& random);
Affine DrawAffine(const RandomTranslation& transform, ImageSize size, RandomStream& random);
Affine DrawAffine(const RandomShear& transform, ImageSize size, RandomStream& random);

// Matrices, as in an Affine. Degrees are at most 3,600.
std::array<double, 6> Rotation(double degrees);  // counterclockwise
double Tangent(double degrees);
inline constexpr std::array<double, 6> kNoMotion{1, 0, 0, 0, 1, 0};

}  // namespace stoker
