// Random options of transforms.
#pragma once

#include <cstdint>
#include <optional>

#include "tests/testing/random.h"
#include "transforms/spec/transform.h"

namespace stoker::testing {

inline Fill NextFill(Random& random) {
  if (random.OneIn(2)) return {};
  return {static_cast<uint8_t>(random.Between(0, 255)),
          static_cast<uint8_t>(random.Between(0, 255)), 7};
}
inline std::optional<Fill> MaybeFill(Random& random) {
  return random.OneIn(2) ? std::nullopt : std::optional<Fill>(NextFill(random));
}
inline Padding NextPadding(Random& random) {
  return random.OneIn(2) ? Padding::kConstant : static_cast<Padding>(random.Between(0, 3));
}
inline Padding NextPaddingOfAffine(Random& random) {
  return static_cast<Padding>(random.Between(0, 4));
}
inline Margins NextMargins(Random& random, int most) {
  return {random.Between(0, most), random.Between(0, most), random.Between(0, most),
          random.Between(0, most)};
}

}  // namespace stoker::testing
