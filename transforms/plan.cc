#include "transforms/plan.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "transforms/draw.h"
#include "transforms/orientation.h"

namespace stoker {

std::vector<int64_t> Plan::row_shape() const {
  if (options_.layout == Layout::kNchw) return {3, output_.height, output_.width};
  return {output_.height, output_.width, 3};
}

size_t Plan::row_bytes() const {
  return static_cast<size_t>(output_.width) * static_cast<size_t>(output_.height) * 3 *
         SizeOf(options_.dtype);
}

std::string Plan::Describe() const {
  std::string text;
  for (const Transform& transform : transforms_) text += std::string(NameOf(transform)) + ", ";
  text += "fused: decode the box only, bilinear";
  for (const Transform& t : transforms_) {
    const auto* resize = std::get_if<Resize>(&t);
    const auto* crop = std::get_if<RandomResizedCrop>(&t);
    if (resize != nullptr || crop != nullptr) {
      text += (resize != nullptr ? resize->antialias : crop->antialias) ? ", antialiased"
                                                                        : ", not antialiased";
    }
  }
  text += std::string(", to ") + NameOf(options_.dtype);
  const char* before = " ";
  for (const int64_t side : row_shape()) {
    text += before + std::to_string(side);
    before = " × ";
  }
  return text;
}

}  // namespace stoker
