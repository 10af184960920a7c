// What a user asks to be done to whole batches: torchvision's MixUp and CutMix, and a random choice
// between them, as plain values; and what is drawn for one batch.
//
// Row i of a batch is mixed with row i − 1 of the same batch, row 0 with the last one. Labels
// become one float32 for each class, mixed likewise.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "core/image.h"
#include "core/random.h"
#include "core/result.h"

namespace stoker {

// lam × row + (1 − lam) × the row before, lam ~ Beta(alpha, alpha) once for each batch (Zhang et
// al.: "mixup: beyond empirical risk minimization", 2018).
struct MixUp {
  double alpha = 1;
};

// A box of the row before is pasted in, the same one in all rows of a batch. It has 1 − lam of the
// image's area, lam ~ Beta(alpha, alpha), less what reaches outside the image; labels are weighted
// by the area that is left (Yun et al.: "CutMix", 2019).
struct CutMix {
  double alpha = 1;
};

struct BatchMix {
  std::vector<std::variant<MixUp, CutMix>> choices{};  // one of them is drawn for each batch
  std::vector<double> p{};  // their weights, of any positive sum; empty: all the same
  int64_t num_classes = 0;  // of labels; 0: as many as the source has
};

inline constexpr double kLeastAlpha = 1e-6, kMostAlpha = 1e6;
inline constexpr size_t kMostMixes = 16;
inline constexpr int64_t kMostClasses = int64_t{1} << 24;

// Of its first choice: "MixUp", "CutMix". Precondition: there is one.
const char* NameOf(const BatchMix& mix);

// InvalidArgument names the transform and the option.
Status CheckMix(const BatchMix& mix);

// What becomes of one batch.
struct DrawnMix {
  bool cut = false;  // `box` is pasted; else all is blended
  double lam = 1;    // how much of its own label a row keeps, and where it is blended of its pixels
  Rect box{};        // may be empty
  friend bool operator==(const DrawnMix&, const DrawnMix&) = default;
};

// A pure function of seed, epoch and the position of the batch's first row, to the bit on every
// machine. Preconditions: CheckMix; image sides of at least 1.
DrawnMix DrawMix(const BatchMix& mix, const DrawKey& first_row, ImageSize image);

// Its parts. A number in [0, 1] that is Beta(alpha, alpha) distributed; and the box of
// torchvision's CutMix around a pixel of the image.
double DrawBeta(double alpha, RandomStream& random);
DrawnMix CutAround(int x, int y, double lam, ImageSize image);

}  // namespace stoker
