#include "transforms/plan.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "transforms/draw.h"
#include "transforms/orientation.h"

namespace stoker {

namespace {

// The geometry so far. Mirrored images are kept as they were, and what is cut from them is cut from
// the other side.
class Drawing {
 public:
  explicit Drawing(ImageSize image) { geometry_.box = {0, 0, image.width, image.height}; }

  void Apply(const Resize& t, RandomStream&) {
    const ImageSize size =
        t.size > 0 ? ShorterSideTo(t.size, geometry_.box.size()) : ImageSize{t.width, t.height};
    Resample(size, t.antialias);
  }
  void Apply(const CenterCrop& t, RandomStream&) {
    Rect& current = resampled_ ? geometry_.window : geometry_.box;
    Cut(current, CenterBox({t.width, t.height}, current.size()));
  }
  void Apply(const RandomResizedCrop& t, RandomStream& random) {
    Cut(geometry_.box, DrawResizedBox(t, geometry_.box.size(), random));
    Resample({t.width, t.height}, t.antialias);
  }
  void Apply(const RandomHorizontalFlip& t, RandomStream& random) {
    if (random.Uniform() < t.p) geometry_.flip = !geometry_.flip;
  }
  void Apply(const Normalize&, RandomStream&) {}

  Geometry Finish() {
    if (!resampled_) Resample(geometry_.box.size(), true);
    return geometry_;
  }

 private:
  void Cut(Rect& from, Rect part) const {
    if (geometry_.flip) part.x = from.width - part.x - part.width;
    from = {from.x + part.x, from.y + part.y, part.width, part.height};
  }
  void Resample(ImageSize size, bool antialias) {
    geometry_.resized = size;
    geometry_.window = {0, 0, size.width, size.height};
    geometry_.antialias = antialias;
    resampled_ = true;
  }

  Geometry geometry_;
  bool resampled_ = false;
};

}  // namespace

std::vector<int64_t> Plan::row_shape() const {
  if (options_.layout == Layout::kNchw) return {3, output_.height, output_.width};
  return {output_.height, output_.width, 3};
}

size_t Plan::row_bytes() const {
  return static_cast<size_t>(output_.width) * static_cast<size_t>(output_.height) * 3 *
         SizeOf(options_.dtype);
}

Geometry Plan::Draw(const DrawKey& key, ImageSize image) const {
  Drawing drawing(image);
  for (size_t i = 0; i < transforms_.size(); ++i) {
    RandomStream random(key, static_cast<uint32_t>(i));
    std::visit([&](const auto& transform) { drawing.Apply(transform, random); }, transforms_[i]);
  }
  return drawing.Finish();
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
