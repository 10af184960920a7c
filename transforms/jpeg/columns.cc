#include "transforms/jpeg/columns.h"

#include <algorithm>

namespace stoker {

Columns ColumnsToDecode(Columns wanted, int image_width, int imcu_width, bool fancy) {
  const int margin = fancy ? 1 : 0;
  int left = std::max(wanted.x - margin, 0) / imcu_width * imcu_width;
  int right = std::max(wanted.x + wanted.width + margin, left + imcu_width);
  if (right > image_width) right = image_width;
  if (right - left < imcu_width) left = std::max(left - imcu_width, 0);
  return {left, right - left};
}

}  // namespace stoker
