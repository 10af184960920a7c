// BatchMix: mixing of whole batches, i.e. torchvision's MixUp and CutMix and random choices between
// them, as values; and DrawnMix, the parameters drawn for one batch.
//
// Row i of a batch is mixed with row i − 1, row 0 with the last one. Labels become one float32 per
// class, mixed in the same way.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "core/image.h"
#include "core/random.h"
#include "core/result.h"

namespace stoker {

// lam × row + (1 − lam) × previous row, with lam ~ Beta(alpha, alpha) drawn once per batch (Zhang
// et al.: "mixup: beyond empirical risk minimization", 2018).
struct MixUp {
  double alpha = 1;
};

// Pastes a box of the previous row, the same box in all rows of a batch. Its area is 1 − lam of the
// image's, with lam ~ Beta(alpha, alpha), minus the part outside the image; labels are weighted by
// the remaining area (Yun et al.: "CutMix", 2019).
struct CutMix {
  double alpha = 1;
};

struct BatchMix {
  std::vector<std::variant<MixUp, CutMix>> choices{};  // one of them is drawn for each batch
  std::vector<double> p{};  // their weights, with any positive sum; empty: equal
  int64_t num_classes = 0;  // number of classes; 0: as many as the source has
};

inline constexpr double kLeastAlpha = 1e-6, kMostAlpha = 1e6;
inline constexpr size_t kMostMixes = 16;
inline constexpr int64_t kMostClasses = int64_t{1} << 24;

// The name of its first choice: "MixUp" or "CutMix". Precondition: there is one.
const char* NameOf(const BatchMix& mix);

// InvalidArgument names the transform and the option.
Status CheckMix(const BatchMix& mix);

// The drawn parameters of one batch.
struct DrawnMix {
  bool cut = false;  // `box` is pasted; otherwise whole rows are blended
  double lam = 1;    // the weight of a row's own label and, if blended, of its own pixels
  Rect box{};        // may be empty
  friend bool operator==(const DrawnMix&, const DrawnMix&) = default;
};

// A pure function of seed, epoch and the position of the batch's first row, bit-exact on every
// machine. Preconditions: CheckMix is ok; image sides of at least 1.
DrawnMix DrawMix(const BatchMix& mix, const DrawKey& first_row, ImageSize image);

// Its parts: a Beta(alpha, alpha) distributed number in [0, 1], and the box of torchvision's CutMix
// around a pixel of the image.
double DrawBeta(double alpha, RandomStream& random);
DrawnMix CutAround(int x, int y, double lam, ImageSize image);

}  // namespace stoker
