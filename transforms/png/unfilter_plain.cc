#include <cstdlib>

#include "transforms/png/unfilter.h"

namespace stoker::png {
namespace {

int Paeth(int left, int above, int corner) {
  const int estimate = left + above - corner;
  const int to_left = std::abs(estimate - left), to_above = std::abs(estimate - above);
  const int to_corner = std::abs(estimate - corner);
  if (to_left <= to_above && to_left <= to_corner) return left;
  return to_above <= to_corner ? above : corner;
}

int Predict(Filter filter, int left, int above, int corner) {
  switch (filter) {
    case Filter::kNone:
      return 0;
    case Filter::kSub:
      return left;
    case Filter::kUp:
      return above;
    case Filter::kAverage:
      return (left + above) / 2;
    case Filter::kPaeth:
      break;
  }
  return Paeth(left, above, corner);
}

}  // namespace

void UnfilterPlain(Filter filter, size_t pixel, std::span<const uint8_t> part, const uint8_t* above,
                   uint8_t* row) {
  const auto before = -static_cast<ptrdiff_t>(pixel);
  for (const uint8_t byte : part) {
    *row = static_cast<uint8_t>(byte + Predict(filter, row[before], *above, above[before]));
    ++row;
    ++above;
  }
}

void FilterPlain(Filter filter, size_t pixel, std::span<const uint8_t> row, const uint8_t* above,
                 uint8_t* filtered) {
  const auto before = -static_cast<ptrdiff_t>(pixel);
  const uint8_t* at = row.data();
  for (size_t i = 0; i < row.size(); ++i, ++at, ++above) {
    filtered[i] = static_cast<uint8_t>(*at - Predict(filter, at[before], *above, above[before]));
  }
}

}  // namespace stoker::png
