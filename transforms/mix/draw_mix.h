// DrawnMix: the parameters drawn for one batch.
#pragma once

#include "core/batch/image.h"
#include "core/numbers/random.h"
#include "transforms/mix/batch_mix.h"

namespace stoker {

// The drawn parameters of one batch.
struct DrawnMix {
  bool cut = false;  // `box` is pasted; otherwise whole rows are blended
  double lam = 1;    // the weight of a row's own label and, if blended, of its own pixels
  Rect box{};        // may be empty
  friend bool operator==(const DrawnMix&, const DrawnMix&) = default;
};

// Draws the parameters. A pure function of seed, epoch and the position of the batch's first row,
// bit-exact on every machine. Preconditions: CheckMix is OK; image sides of at least 1.
DrawnMix DrawMix(const BatchMix& mix, const DrawKey& first_row, ImageSize image);

// The parts of DrawMix: a Beta(alpha, alpha) distributed number in [0, 1], and the box of
// torchvision's CutMix around a pixel of the image.
double DrawBeta(double alpha, RandomStream& random);
// The logarithm of a Gamma(alpha, 1) distributed number.
double DrawLogGamma(double alpha, RandomStream& random);
DrawnMix CutAround(int x, int y, double lam, ImageSize image);

}  // namespace stoker
