#include "transforms/augment/geometry/border.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

// The reference: moves towards the image one step after the other.
int64_t MirrorIndex(int64_t at, int64_t size, bool edge_twice) {
  while (at < 0 || at >= size) {
    if (at < 0) at = edge_twice ? -1 - at : -at;
    if (at >= size) at = edge_twice ? 2 * size - 1 - at : 2 * size - 2 - at;
  }
  return at;
}

TEST(Border, MirrorsAsOftenAsNeeded) {
  for (const int64_t size : {1, 2, 3, 7, 224}) {
    for (int64_t at = -1000; at <= 1000; ++at) {
      const int64_t reflected = size == 1 ? 0 : MirrorIndex(at, size, false);
      ASSERT_EQ(Padded(at, size, Padding::kReflect), reflected) << at << " of " << size;
      ASSERT_EQ(Padded(at, size, Padding::kSymmetric), MirrorIndex(at, size, true));
    }
  }
}

TEST(Border, WrapsAround) {
  for (const int64_t size : {1, 2, 3, 7, 224}) {
    for (int64_t at = -1000; at <= 1000; ++at) {
      ASSERT_EQ(Padded(at, size, Padding::kWrap), (at + 1000 * size) % size)
          << at << " of " << size;
    }
  }
}

TEST(Border, ClampsToEdgesOrFills) {
  for (const int64_t at : {-1000000000000, -1L, 5L, 1000000000000}) {
    EXPECT_EQ(Padded(at, 5, Padding::kConstant), -1);
    EXPECT_EQ(Padded(at, 5, Padding::kEdge), at < 0 ? 0 : 4);
  }
  for (int64_t at = 0; at < 5; ++at) {
    for (const Padding padding :
         {Padding::kConstant, Padding::kEdge, Padding::kReflect, Padding::kSymmetric}) {
      EXPECT_EQ(Padded(at, 5, padding), at);
    }
  }
}

}  // namespace
}  // namespace stoker
