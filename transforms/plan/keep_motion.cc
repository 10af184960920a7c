#include "transforms/plan/keep_motion.h"

#include <utility>
#include <variant>

#include "transforms/plan/draw.h"

namespace stoker {

namespace {

// Makes a step part of the geometry, if it can be.
class Merge {
 public:
  explicit Merge(Geometry& geometry) : geometry_(geometry) {}

  bool operator()(const Mirror& mirror) const {
    geometry_.mirror_columns ^= mirror.columns;
    geometry_.mirror_rows ^= mirror.rows;
    return true;
  }
  // Pixels that were cut off must not come back as padding.
  bool operator()(const Reframe& reframe) const {
    Rect &window = geometry_.window, part = reframe.window;
    const ImageSize resized = geometry_.resized;
    const bool is_crop = Contains({0, 0, window.width, window.height}, part);
    const bool has_all = Contains(window, {0, 0, resized.width, resized.height});
    if (!is_crop && !(has_all && reframe.padding == Padding::kConstant)) return false;
    if (geometry_.mirror_columns) part.x = window.width - part.x - part.width;
    if (geometry_.mirror_rows) part.y = window.height - part.y - part.height;
    window = {window.x + part.x, window.y + part.y, part.width, part.height};
    return true;
  }
  template <typename T>
  bool operator()(const T&) const {
    return false;
  }

 private:
  Geometry& geometry_;
};

// Adapts a step to a mask; false if it only changes values.
class Adapt {
 public:
  explicit Adapt(const Fill& fill) : fill_(fill) {}

  bool operator()(Mirror&) const { return true; }
  bool operator()(Reframe& step) const {
    step.fill = fill_;
    return true;
  }
  bool operator()(Affine& step) const {
    step.interpolation = Interpolation::kNearest;
    step.fade = false;
    step.fill = fill_;
    return true;
  }
  template <typename T>
  bool operator()(T&) const {
    return false;
  }

 private:
  Fill fill_;
};

}  // namespace

void KeepMotion(DrawnSample& drawn, const Fill& fill) {
  drawn.geometry.antialias = false;
  drawn.geometry.interpolation = Interpolation::kNearest;
  drawn.erasures.clear();
  size_t kept = 0;
  for (DrawnStep& drawn_step : drawn.steps) {
    if (!std::visit(Adapt(fill), drawn_step.step)) continue;
    if (kept == 0 && std::visit(Merge(drawn.geometry), drawn_step.step)) continue;
    DrawnStep& to = drawn.steps[kept++];
    if (&to != &drawn_step) to = std::move(drawn_step);
  }
  drawn.steps.resize(kept);
}

}  // namespace stoker
