// BatchMix: the mixing of whole batches as values: torchvision's MixUp and CutMix, and random
// choices between them.
//
// Row i of a batch is mixed with row i − 1, row 0 with the last one. Labels become one float32 per
// class, mixed in the same way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include "core/result/result.h"

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
  std::vector<double> p{};  // their weights, with any positive sum; empty means equal
  int64_t num_classes = 0;  // number of classes; 0 means as many as the source has
};

inline constexpr double kMinAlpha = 1e-6, kMaxAlpha = 1e6;
inline constexpr size_t kMaxMixes = 16;
inline constexpr int64_t kMaxClasses = int64_t{1} << 24;

// Returns the name of its first choice: "MixUp" or "CutMix". Precondition: it has a choice.
const char* NameOf(const BatchMix& mix);

// InvalidArgument names the transform and the option.
Status CheckMix(const BatchMix& mix);

}  // namespace stoker
