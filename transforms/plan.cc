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

uint64_t Plan::tile_bytes() const {
  constexpr uint64_t kTiles = 4;  // of two samples in turns: one that is read, one that is written
  if (std::find(places_.begin(), places_.end(), Place::kTile) == places_.end()) return 0;
  return kTiles * 3 * static_cast<uint64_t>(output_.width) * static_cast<uint64_t>(output_.height);
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
  for (size_t i = 0, listed = 0; i < places_.size(); ++i) {
    if (places_[i] != Place::kTile) continue;
    text += (listed++ == 0 ? ", on the tile: " : ", ") + std::string(NameOf(transforms_[i]));
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
