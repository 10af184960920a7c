#include "transforms/png/unfilter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "tests/testing/effort.h"
#include "tests/testing/on_target.h"
#include "tests/testing/random.h"
#include "transforms/png/inflater.h"

namespace stoker::png {
namespace {

using stoker::testing::Effort;
using stoker::testing::Random;
using Bytes = std::vector<uint8_t>;

class Unfilters : public stoker::testing::OnTarget {};

// Rows in two parts, as the decompressed data come, which end anywhere in a pixel.
TEST_P(Unfilters, LikeTheReference) {
  Random random(1);
  for (int n = 0; n < Effort(40'000); ++n) {
    const auto filter = static_cast<Filter>(random.Between(0, kFilters - 1));
    constexpr size_t kPixels[] = {1, 2, 3, 4, 6, 8};
    const size_t pixel = kPixels[random.Between(0, 5)];
    const auto size = static_cast<size_t>(random.Between(1, random.OneIn(2) ? 40 : 600));
    const auto cut = static_cast<size_t>(random.Between(0, static_cast<int>(size)));
    const int kind = random.Between(0, 2);
    const auto fill = [&](size_t bytes) {
      Bytes values(bytes);
      for (uint8_t& value : values) {
        value = static_cast<uint8_t>(kind == 0   ? random.Between(0, 255)
                                     : kind == 1 ? random.Between(-2, 2)
                                                 : 255 * random.Between(0, 1));
      }
      return values;
    };
    constexpr size_t kUntouched = 8;
    const Bytes raw = fill(size + kInflatedPadding);
    Bytes above = fill(size + 2 * kRowPadding), plain = fill(above.size() + kUntouched);
    std::fill_n(above.begin(), kRowPadding, uint8_t{0});
    std::fill_n(plain.begin(), kRowPadding, uint8_t{0});
    Bytes fast = plain;
    const auto part = std::span(raw).first(size);
    UnfilterPlain(filter, pixel, part, above.data() + kRowPadding, plain.data() + kRowPadding);
    for (const auto& [from, to] : {std::pair{size_t{0}, cut}, {cut, size}}) {
      if (from == to) continue;
      Unfilter(filter, pixel, part.subspan(from, to - from), above.data() + kRowPadding + from,
               fast.data() + kRowPadding + from);
    }
    const auto end = static_cast<ptrdiff_t>(kRowPadding + size);
    ASSERT_TRUE(std::equal(plain.begin(), plain.begin() + end, fast.begin()))
        << "filter " << static_cast<int>(filter) << ", " << pixel << " bytes, " << size;
    ASSERT_TRUE(std::equal(plain.end() - kUntouched, plain.end(), fast.end() - kUntouched)) << size;
  }
}

// All values of the three neighbours that the predictor chooses from; some corners if there is
// little effort.
TEST_P(Unfilters, PaethOfAllNeighbours) {
  constexpr int kAll = 256;
  const Bytes raw(8 + kInflatedPadding);
  Bytes above(8 + 2 * kRowPadding), fast(above), plain(above);
  const auto corners = static_cast<size_t>(Effort(kAll));
  for (size_t n = 0; n < corners; ++n) {
    const size_t corner = n * 167 % kAll;  // all of them, in mixed order
    for (size_t left = 0; left < kAll; left += 8) {
      for (size_t up = 0; up < kAll; ++up) {
        // Pixels of eight bytes: each byte has a neighbour to the left of its own.
        for (size_t i = 0; i < 8; ++i) {
          above[kRowPadding - 8 + i] = static_cast<uint8_t>(corner);
          above[kRowPadding + i] = static_cast<uint8_t>(up);
          fast[kRowPadding - 8 + i] = plain[kRowPadding - 8 + i] = static_cast<uint8_t>(left + i);
        }
        const auto part = std::span<const uint8_t>(raw).first(8);
        Unfilter(Filter::kPaeth, 8, part, above.data() + kRowPadding, fast.data() + kRowPadding);
        UnfilterPlain(Filter::kPaeth, 8, part, above.data() + kRowPadding,
                      plain.data() + kRowPadding);
        ASSERT_TRUE(std::equal(plain.begin() + kRowPadding, plain.begin() + kRowPadding + 8,
                               fast.begin() + kRowPadding))
            << corner << " " << left << " " << up;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, Unfilters, stoker::testing::EachTarget(),
                         stoker::testing::NameOfTarget);

}  // namespace
}  // namespace stoker::png
