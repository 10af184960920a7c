// Plan::Draw: draws all random parameters of a sample and computes where its pixels come from.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/result/try.h"
#include "transforms/augment/geometry/draw_affine.h"
#include "transforms/augment/policy.h"
#include "transforms/plan/draw.h"
#include "transforms/plan/geometry_map.h"
#include "transforms/plan/mosaic.h"
#include "transforms/plan/moved_objects.h"
#include "transforms/plan/plan.h"
#include "transforms/plan/workspace.h"
#include "transforms/spec/transform_table.h"
#include "transforms/spec/weights.h"

namespace stoker {

namespace {

// Returns the part of an axis of `length` pixels that supplies the pixels [begin, begin + count),
// some of which may lie outside and be mirrored or repeated from the ends.
std::pair<int, int> SpanOf(int begin, int count, int length) {
  const int before = std::max(0, -begin), after = std::max(0, begin + count - length);
  if (before == 0 && after == 0) return {begin, begin + count};
  if ((before > 0 && after > 0) || std::max(before, after) >= length) return {0, length};
  if (before > 0) return {0, std::min(length, std::max(before, begin + count - 1) + 1)};
  return {std::max(0, std::min(begin, length - 1 - after)), length};
}

}  // namespace

// Collects transforms into the geometry as long as possible; the transforms after that become
// steps.
//
// A mirrored image is stored unmirrored, and crops of it are taken from the opposite side.
//
// Each transform moves the objects at once, because torchvision clamps boxes after each one.
class Plan::Drawing {
 public:
  // `canvas`: if the image is its tile.
  Drawing(const Plan& plan, const DrawKey& key, ImageSize image, DrawnSample& drawn,
          ViewContext* context, const Canvas* canvas = nullptr)
      : plan_(plan),
        key_(key),
        drawn_(drawn),
        geometry_(drawn.geometry),
        context_(context),
        objects_(context == nullptr ? nullptr : &context->objects),
        image_(image),
        canvas_(canvas) {
    geometry_ = {.box = {0, 0, image.width, image.height}, .resized = image, .window = {}};
    drawn_.placed.reset();
    drawn_.canvas.reset();
    drawn_.steps.clear();
    drawn_.erasures.clear();
  }

  void ApplyNext(const Transform& transform) {
    ApplyOne(transform);
    ++transform_;
  }

  // Continues with the transform at `index` once both images of a row are there, each on its tile.
  void ContinueAt(size_t index) {
    Skip(std::span(plan_.transforms_).first(index));
    transform_ = static_cast<uint32_t>(index);
    if (objects_ != nullptr) objects_->SetAside(context_->canvas[1].first);
    Push(Paste{});
  }

  // Makes the image, which is the tile of a canvas, that of the row.
  void CutFromCanvas(const Mosaic& t) {
    if (!status_.ok()) return;
    const Rect &tile = canvas_->tile, &all = canvas_->all;
    const Rect row{0, 0, t.size, t.size};
    if (mosaic_->turns()) {
      PushTurn(t, tile, row);
    } else {
      Push(Reframe{RelativeTo(tile, row), Padding::kConstant, t.fill});
      size_ = row.size();
    }
    drawn_.steps.back().transform = 0;  // the Mosaic, not the transform that is applied next
    if (objects_ == nullptr) return;
    size_t place = 0;
    for (int copies = 0; copies < 2; ++copies) {
      for (const ShapeMasks::Image& image : context_->ImagesOf(drawn_, image_)) {
        place = FindBoxes(image, {image.drawn->canvas->whole, all, TurnOfRow(), row.size()}, place);
      }
    }
    CropToMosaic(RelativeTo(all, row), place);
  }

  // Returns the first failure, or completes the draw.
  Status TakeStatus() {
    if (status_.ok()) CompleteGeometry();
    drawn_.size = size();
    return std::move(status_);
  }

 private:
  RandomStream StreamOf(const Transform& transform) {
    const uint8_t kind = DrawsOf(transform);
    return RandomStream(key_, of_kind_[kind]++, kind);
  }

  void ApplyOne(const Transform& transform) {
    if (!status_.ok()) return;
    RandomStream random = StreamOf(transform);
    std::visit([&](const auto& t) { Apply(t, random); }, transform);
  }

  // Counts transforms that are not applied, because the draws of later ones do not depend on that.
  void Skip(std::span<const Transform> transforms) {
    for (const Transform& transform : transforms) {
      ++of_kind_[DrawsOf(transform)];
      if (const std::vector<Transform>* held = HeldBy(transform)) Skip(*held);
    }
  }

  void Apply(const Resize& t, RandomStream&) {
    ResizeTo(SizeAfter(t, frame().size()), {t.antialias, t.interpolation, t.resampler});
  }
  void Apply(const RandomShortestSize& t, RandomStream& random) {
    ResizeTo(DrawShortestSize(t, frame().size(), random),
             {t.antialias, t.interpolation, t.resampler});
  }
  void Apply(const ScaleJitter& t, RandomStream& random) {
    ResizeTo(DrawScaledSize(t, frame().size(), random),
             {t.antialias, t.interpolation, t.resampler});
  }
  void Apply(const CenterCrop& t, RandomStream&) {
    Cut(CenterBox({t.width, t.height}, size()), Padding::kConstant, {});
  }
  void Apply(const RandomResizedCrop& t, RandomStream& random) {
    Cut(DrawResizedBox(t, size(), random), Padding::kConstant, {});
    ResizeTo({t.width, t.height}, {t.antialias, t.interpolation, t.resampler});
  }
  void Apply(const RandomHorizontalFlip& t, RandomStream& random) {
    if (random.Uniform() < t.p) Flip({.columns = true, .rows = false});
  }
  void Apply(const RandomVerticalFlip& t, RandomStream& random) {
    if (random.Uniform() < t.p) Flip({.columns = false, .rows = true});
  }
  void Apply(const Normalize&, RandomStream&) {}

  void Apply(const Pad& t, RandomStream&) { Cut(Extended(t.padding), t.padding_mode, t.fill); }
  void Apply(const RandomCrop& t, RandomStream& random) {
    const ImageSize before = size();
    Rect padded = Extended(t.padding);
    const int lacks_x = std::max(0, t.width - padded.width);
    const int lacks_y = std::max(0, t.height - padded.height);
    if (lacks_x > 0 || lacks_y > 0) {
      if (!t.pad_if_needed) return RefuseSize(t, padded.size());
      padded = {padded.x - lacks_x, padded.y - lacks_y, padded.width + 2 * lacks_x,
                padded.height + 2 * lacks_y};
    }
    // torchvision then does nothing, and does not clamp boxes either.
    if (padded.size() == before && ImageSize{t.width, t.height} == before) return;
    const auto offset = [&](int room) {
      return static_cast<int>(random.Below(static_cast<uint64_t>(room) + 1));
    };
    const int y = offset(padded.height - t.height), x = offset(padded.width - t.width);
    Cut({padded.x + x, padded.y + y, t.width, t.height}, t.padding_mode, t.fill);
  }

  void Apply(const RandomSizeCrop& t, RandomStream& random) {
    const auto [width, height] = size();
    const auto side = [&](int all) {
      const int most = std::min(all, t.max_size), least = std::min(most, t.min_size);
      return least + static_cast<int>(random.Below(static_cast<uint64_t>(most - least) + 1));
    };
    const auto offset = [&](int room) {
      return static_cast<int>(random.Below(static_cast<uint64_t>(room) + 1));
    };
    const int w = side(t.square ? std::min(width, height) : width), h = t.square ? w : side(height);
    const int y = offset(height - h), x = offset(width - w);
    Cut({x, y, w, h}, Padding::kConstant, {});
  }

  void Apply(const RandomZoomOut& t, RandomStream& random) {
    if (random.Uniform() >= t.p) return;
    const double times = random.Uniform(t.side_range[0], t.side_range[1]);
    const auto larger = [times](int side) {
      return static_cast<int>(std::min<double>(side * times, std::max(side, kMaxSidePixels)));
    };
    const auto place = [&](int room) { return static_cast<int>(room * random.Uniform()); };
    const ImageSize image = size(), canvas{larger(image.width), larger(image.height)};
    const int left = place(canvas.width - image.width), top = place(canvas.height - image.height);
    Cut({-left, -top, canvas.width, canvas.height}, Padding::kConstant, t.fill);
  }
  // torchvision compares centers before it clamps boxes.
  void Apply(const RandomIoUCrop& t, RandomStream& random) {
    if (objects_ == nullptr) return;
    const std::optional<Rect> part = DrawIoUCrop(t, size(), objects_->boxes(), random);
    if (!part) return;
    objects_->KeepCentersIn(*part);
    Cut(*part, Padding::kConstant, {});
  }

  void Apply(const ColorJitter& t, RandomStream& random) {
    if (random.Uniform() >= t.p) return;
    std::array<int, 4> order{0, 1, 2, 3};
    for (uint64_t i = 3; i > 0; --i) std::swap(order[i], order[random.Below(i + 1)]);
    const auto draw = [&](const std::array<double, 2>& range) {
      return static_cast<float>(random.Uniform(range[0], range[1]));
    };
    const float brightness = draw(t.brightness), contrast = draw(t.contrast);
    const float saturation = draw(t.saturation), hue = draw(t.hue);
    for (const int which : order) {
      if (which == 0 && brightness != 1) Push(AdjustBrightness{brightness});
      if (which == 1 && contrast != 1) Push(AdjustContrast{contrast});
      if (which == 2 && saturation != 1) Push(AdjustSaturation{saturation});
      if (which == 3 && hue != 0) Push(AdjustHue{hue});
    }
  }
  void Apply(const RandomPhotometricDistort& t, RandomStream& random) {
    const auto draw = [&](const std::array<double, 2>& range) -> std::optional<float> {
      if (random.Uniform() >= t.p) return std::nullopt;
      return static_cast<float>(random.Uniform(range[0], range[1]));
    };
    const std::optional<float> brightness = draw(t.brightness), contrast = draw(t.contrast);
    const std::optional<float> saturation = draw(t.saturation), hue = draw(t.hue);
    const bool contrast_first = random.Uniform() < 0.5;
    if (brightness) Push(AdjustBrightness{*brightness});
    if (contrast && contrast_first) Push(AdjustContrast{*contrast});
    if (saturation) Push(AdjustSaturation{*saturation});
    if (hue) Push(AdjustHue{*hue});
    if (contrast && !contrast_first) Push(AdjustContrast{*contrast});
    if (random.Uniform() >= t.p) return;
    PermuteChannels permute;
    for (uint64_t i = 2; i > 0; --i) std::swap(permute.from[i], permute.from[random.Below(i + 1)]);
    Push(permute);
  }
  void Apply(const RandomHSV& t, RandomStream& random) {
    const auto draw = [&](const std::array<double, 2>& range) {
      return static_cast<float>(random.Uniform(range[0], range[1]));
    };
    AdjustHsv step{.shift = draw(t.hue)};
    step.saturation = draw(t.saturation);
    step.value = draw(t.value);
    if (step.shift != 0 || step.saturation != 1 || step.value != 1) Push(step);
  }
  void Apply(const RandomGrayscale& t, RandomStream& random) {
    if (random.Uniform() < t.p) Push(Grayscale{});
  }
  void Apply(const RandomSolarize& t, RandomStream& random) {
    if (random.Uniform() < t.p) Push(Solarize{static_cast<float>(t.threshold)});
  }
  void Apply(const RandomInvert& t, RandomStream& random) {
    if (random.Uniform() < t.p) Push(Invert{});
  }
  void Apply(const RandomPosterize& t, RandomStream& random) {
    if (random.Uniform() < t.p) Push(Posterize{t.bits});
  }
  void Apply(const RandomAdjustSharpness& t, RandomStream& random) {
    if (random.Uniform() < t.p) Push(AdjustSharpness{t.sharpness_factor});
  }
  void Apply(const RandomAutocontrast& t, RandomStream& random) {
    if (random.Uniform() < t.p) Push(AutoContrast{});
  }
  void Apply(const RandomEqualize& t, RandomStream& random) {
    if (random.Uniform() < t.p) Push(Equalize{});
  }
  void Apply(const GaussianBlur& t, RandomStream& random) {
    if (random.Uniform() >= t.p) return;
    const double sigma = random.Uniform(t.sigma[0], t.sigma[1]);
    if (t.kernel_width == 1 && t.kernel_height == 1) return;
    if (t.kernel_width / 2 >= size().width || t.kernel_height / 2 >= size().height) {
      return RefuseSize(size(), " is too small for", {t.kernel_width, t.kernel_height},
                        "GaussianBlur",
                        "Give a smaller kernel_size: half of it must lie within the image");
    }
    return Push(Blur{{t.kernel_width, t.kernel_height}, sigma, sigma});
  }
  void Apply(const RandomAffine& t, RandomStream& random) { Move(t, random); }
  void Apply(const RandomRotation& t, RandomStream& random) { Move(t, random); }
  void Apply(const RandomPerspective& t, RandomStream& random) {
    if (random.Uniform() < t.p) Move(t, random);
  }
  void Apply(const ElasticTransform& t, RandomStream& random) { Move(t, random); }
  void Apply(const RandomZoom& t, RandomStream& random) { Move(t, random); }
  void Apply(const RandomTranslation& t, RandomStream& random) { Move(t, random); }
  void Apply(const RandomShear& t, RandomStream& random) { Move(t, random); }
  void Apply(const AutoAugment& t, RandomStream& random) { Policy(t, random); }
  void Apply(const RandAugment& t, RandomStream& random) { Policy(t, random); }
  void Apply(const TrivialAugmentWide& t, RandomStream& random) { Policy(t, random); }
  void Apply(const AugMix& t, RandomStream& random) { Policy(t, random); }

  void Apply(const RandomApply& t, RandomStream& random) {
    if (random.Uniform() >= t.p) return Skip(t.transforms);
    for (const Transform& held : t.transforms) ApplyOne(held);
  }
  void Apply(const RandomChoice& t, RandomStream& random) {
    const std::span<const Transform> held(t.transforms);
    const size_t chosen = ChooseIndex(random.Uniform(), t.p, held.size());
    Skip(held.first(chosen));
    ApplyOne(held[chosen]);
    Skip(held.subspan(chosen + 1));
  }
  // Each transform draws as it would in the order of the list.
  void Apply(const RandomOrder& t, RandomStream& random) {
    const std::span<const Transform> held(t.transforms);
    std::array<uint8_t, kMaxTransforms> order{};
    for (size_t i = 0; i < held.size(); ++i) order[i] = static_cast<uint8_t>(i);
    for (size_t i = held.size(); i > 1; --i) std::swap(order[i - 1], order[random.Below(i)]);
    const auto before = of_kind_;
    for (const uint8_t index : std::span(order).first(held.size())) {
      of_kind_ = before;
      Skip(held.first(index));
      ApplyOne(held[index]);
    }
    of_kind_ = before;
    Skip(held);
  }

  void Apply(const CopyPaste& t, RandomStream&) {
    if (context_ != nullptr && !context_->to.objects->masks.empty()) status_ = PasteObjects(t);
  }

  Status PasteObjects(const CopyPaste& t) {
    constexpr size_t kMost = 8192;  // bounds the time
    const bool mirrors = t.mode == CopyPaste::Mode::kFlip;
    if (const size_t count = objects_->all().size(); count > kMost) {
      return Error{.code = Code::kInvalidArgument,
                   .cause = (mirrors ? "the image has " : "the two images have ") +
                            std::to_string(count) + " objects, and CopyPaste can compare " +
                            std::to_string(kMost) + " with each other",
                   .advice = "Leave the sample out"};
    }
    std::vector<uint32_t>& chosen = objects_->Choose(t.p, t.mode);
    if (chosen.empty()) return {};
    if (mirrors) Push(Mirror{.columns = true});  // finds where the copies are
    Augmenter& scratch = canvas_ != nullptr ? context_->of_shapes : context_->augmenter;
    ASSIGN_OR_RETURN(
        const uint8_t* const inside,
        context_->shapes.DrawInside(context_->ImagesOf(drawn_, image_), objects_->all(),
                                    {.size = size_, .row = size_}, scratch, chosen));
    if (chosen.empty()) {
      if (mirrors) drawn_.steps.pop_back();
      return {};
    }
    drawn_.steps.back().step = Paste{inside, mirrors ? nullptr : context_->other.tile().pixels};
    if (mirrors) {
      objects_->PasteMirrored(chosen);
    } else {
      objects_->PasteOthers(chosen);
    }
    return {};
  }

  void Apply(const RandomErasing& t, RandomStream& random) {
    if (random.Uniform() >= t.p) return;
    const Rect box = DrawErasedBox(t, size(), random);
    if (box.width == 0 || box.height == 0) return;
    Erasure erasure{.box = box, .value = t.value, .noise = {}, .transform = transform_};
    if (transform_ < plan_.normalize_index_) erasure.value = Normalized(t.value, plan_.normalize_);
    if (t.noise) erasure.noise = random.Bits();
    drawn_.erasures.push_back(erasure);
  }

  void Apply(const SanitizeBoundingBoxes& t, RandomStream&) {
    if (objects_ != nullptr) objects_->Sanitize(t.min_size, t.min_area);
  }
  void Apply(const ClampBoundingBoxes&, RandomStream&) {
    if (objects_ != nullptr) objects_->Clamp();
  }
  void Apply(const ConvertBoundingBoxFormat& t, RandomStream&) {
    if (objects_ == nullptr) return;
    const bool padded = drawn_.placed || (plan_.pad_to_ && plan_.pad_to_index_ < transform_);
    const ImageSize whole = padded ? plan_.output_ : size();
    objects_->WriteAs(t.format, t.normalized ? std::optional(whole) : std::nullopt);
  }

  void Apply(const Mosaic& t, RandomStream& random) {
    mosaic_ = DrawMosaic(t, random);
    if (canvas_ != nullptr) return;  // the images are on it
    drawn_.row_sizes[key_.part] = image_;
    const PlacedImage at = PlaceImage(t, *mosaic_, key_.part, image_, plan_.has_canvas_,
                                      std::span(drawn_.row_sizes).first(key_.part));
    Resample(at.whole.size(), {});
    const Rect seen = Overlap(at.shown, at.view);
    geometry_.window = IsEmpty(seen) ? Rect() : RelativeTo(at.whole, seen);
    if (mosaic_->turns() && !plan_.has_canvas_ && !IsEmpty(at.part)) {
      Turn(t, seen, at.part);
    } else {
      drawn_.placed = {.part = at.part,
                       .image = IsEmpty(seen) ? Rect() : RelativeTo(at.view, seen),
                       .fill = t.fill};
    }
    if (plan_.has_canvas_) {
      drawn_.canvas = at.canvas;
      drawn_.canvas->images = mosaic_->several ? plan_.parts() : 1;
    }
    if (objects_ == nullptr) return;
    objects_->Resize(at.whole.size());
    objects_->Crop(RelativeTo(at.whole, at.shown));
    if (plan_.has_canvas_) return objects_->Crop(RelativeTo(at.shown, at.canvas.all));
    const size_t found =
        FindBoxes({&drawn_, image_, context_->to.objects->masks, 0, context_->to.objects->count},
                  {at.whole, at.canvas.all, TurnOfRow(), {t.size, t.size}}, 0);
    CropToMosaic({-at.shown.x, -at.shown.y, t.size, t.size}, found);
  }

  std::optional<GeometryMap> TurnOfRow() const {
    return mosaic_->turns() ? std::optional(TurnOf(*mosaic_)) : std::nullopt;
  }

  // Finds the boxes of the image's objects that have polygons, from `place` on. Returns the place
  // after them.
  size_t FindBoxes(const ShapeMasks::Image& image, const MosaicPlace& at, size_t place) {
    const std::span<const uint32_t> kept = objects_->kept();
    if (image.masks.empty() || !status_.ok()) return place;
    status_ = context_->shape_boxes.Grow(kept.size() * sizeof(std::optional<Box>));
    if (!status_.ok()) return place;
    return place +
           context_->shapes.FindBoxes(image, kept.subspan(place), at, ShapeBoxes().subspan(place));
  }

  std::span<std::optional<Box>> ShapeBoxes() {
    return {reinterpret_cast<std::optional<Box>*>(context_->shape_boxes.data()),
            objects_->kept().size()};
  }

  // `found`: the number of objects in ShapeBoxes().
  void CropToMosaic(const Rect& part, size_t found) {
    if (status_.ok()) objects_->CropToMosaic(part, TurnOfRow(), ShapeBoxes().first(found));
  }

  // Turns an image, `seen` of what is then in the row, into its corner of it. Where it meets the
  // others, its edges are repeated once: images do not blend with each other, or with the fill.
  void Turn(const Mosaic& t, Rect seen, const Rect& part) {
    const Rect image{0, 0, seen.width, seen.height};
    if (IsEmpty(seen)) {  // a pixel next to the image
      seen = {static_cast<int>(mosaic_->middle_x), static_cast<int>(mosaic_->middle_y), 1, 1};
      geometry_.window = {geometry_.resized.width, geometry_.resized.height, 1, 1};
    }
    if (mosaic_->several) {
      const int left = key_.part % 2 != 0 ? 1 : 0, top = key_.part / 2 != 0 ? 1 : 0;
      Push(Reframe{{-left, -top, seen.width + 1, seen.height + 1}, Padding::kEdge, {}});
      seen = {seen.x - left, seen.y - top, seen.width + 1, seen.height + 1};
    }
    PushTurn(t, seen, part);
    drawn_.placed = {
        .part = part, .image = image, .fill = t.fill, .corner = CornerOf(*mosaic_, key_.part)};
  }

  // Turns `from`, where the image is now, into `part` of the row.
  void PushTurn(const Mosaic& t, const Rect& from, const Rect& part) {
    const auto middle = [](const Rect& of) -> MapPoint {
      return {of.x + of.width / 2.0, of.y + of.height / 2.0};
    };
    const auto [x, y] = middle(part);
    const auto [from_x, from_y] = middle(from);
    GeometryMap back = Then(Then(Shift(x, y), TurnBackOf(*mosaic_)), Shift(-from_x, -from_y));
    const double divisor = back[8];
    for (double& number : back) number /= divisor;
    Affine step{.interpolation = Interpolation::kBilinear, .fill = t.fill};
    std::copy_n(back.begin(), 6, step.matrix.begin());
    step.divisor = {back[6], back[7]};
    step.size = part.size();
    Push(step);
    size_ = part.size();
  }

  void Apply(const PadTo& t, RandomStream&) {
    const ImageSize most = plan_.output_;
    if (size().width > most.width || size().height > most.height) RefuseSize(t, size());
  }

  // Returns the part of the image that is kept so far, in the image or in the resized box.
  Rect& frame() { return resampled_ ? geometry_.window : geometry_.box; }
  Rect base() const {
    const ImageSize size = resampled_ ? geometry_.resized : image_;
    return {0, 0, size.width, size.height};
  }
  ImageSize size() { return drawn_.steps.empty() ? frame().size() : size_; }

  // Returns the extended box, in coordinates of the current image.
  Rect Extended(const Margins& by) {
    return {-by.left, -by.top, size().width + by.left + by.right,
            size().height + by.top + by.bottom};
  }

  // Crops to `part`; pixels outside the image are filled as `padding` says.
  void Cut(Rect part, Padding padding, const Fill& fill) {
    const Rect all{0, 0, size().width, size().height};
    const bool inside = Contains(all, part);
    if (objects_ != nullptr) objects_->Crop(part);
    if (!drawn_.steps.empty() || !(inside || CanPad(padding, fill))) {
      if (part != all) Push(Reframe{part, padding, fill});
      size_ = part.size();
      return;
    }
    if (!inside) padding_ = {padding, fill, transform_};
    Rect& from = frame();
    part = Unmirrored(part, from.size());
    from = {from.x + part.x, from.y + part.y, part.width, part.height};
  }

  // Converts a part of an image as it is mirrored so far to one of the image as it is stored, or
  // the other way round.
  Rect Unmirrored(Rect part, ImageSize of) const {
    if (geometry_.mirror_columns) part.x = of.width - part.x - part.width;
    if (geometry_.mirror_rows) part.y = of.height - part.y - part.height;
    return part;
  }

  // Whether padding can still be added to the geometry: nothing has been cut off, and earlier
  // padding is of the same kind.
  bool CanPad(Padding padding, const Fill& fill) {
    const Rect& kept = frame();
    if (!Contains(kept, base())) return false;
    return kept == base() ||
           (padding == Padding::kConstant && padding_.mode == padding && padding_.fill == fill);
  }

  void Flip(const Mirror& mirror) {
    if (objects_ != nullptr) objects_->Mirror(mirror.columns, mirror.rows);
    if (drawn_.placed) MirrorPlacement(mirror);
    if (!drawn_.steps.empty()) return Push(mirror);
    geometry_.mirror_columns ^= mirror.columns;
    geometry_.mirror_rows ^= mirror.rows;
  }

  // Steps mirror the image in its part themselves.
  void MirrorPlacement(const Mirror& mirror) {
    auto& [part, image, fill, corner] = *drawn_.placed;
    const ImageSize row = plan_.output_;
    if (corner) {
      for (HalfPlane& side : *corner) {
        if (mirror.columns) side = {-side[0], side[1], side[2] + side[0] * row.width};
        if (mirror.rows) side = {side[0], -side[1], side[2] + side[1] * row.height};
      }
    }
    if (mirror.columns) part.x = row.width - part.x - part.width;
    if (mirror.rows) part.y = row.height - part.y - part.height;
    if (!drawn_.steps.empty()) return;
    if (mirror.columns) image.x = part.width - image.x - image.width;
    if (mirror.rows) image.y = part.height - image.y - image.height;
  }

  void ResizeTo(ImageSize size, const ResamplingFilter& filter) {
    const bool shows_colour = padding_.fill != Fill{} && !Contains(base(), frame());
    if (!drawn_.steps.empty()) {  // Compile refuses lists that may get here
      status_ = Error{Code::kInvalidArgument,
                      "transforms[" + std::to_string(transform_) + "], " +
                          NameOf(plan_.transforms_[transform_]) +
                          " would have to resample an image that is changed already"};
      return;
    }
    if (resampled_ || shows_colour) return ResizeAll(size, filter);
    if (objects_ != nullptr) objects_->Resize(size);
    Resample(size, filter);
  }

  // Resizes all of the image, so that the part that is kept gets this size. Its place is rounded to
  // whole pixels. So the image is resampled once after a crop of a resized image, and padding
  // remains outside of it.
  void ResizeAll(ImageSize size, const ResamplingFilter& filter) {
    const auto scaled = [](int64_t side, int64_t to, int64_t from) {
      const int64_t twice = 2 * side * to + from, by = 2 * from;  // rounded down, not to zero
      return twice / by - (twice % by < 0 ? 1 : 0);
    };
    const Rect kept = frame(), all = base();
    const int64_t x = scaled(kept.x, size.width, kept.width);
    const int64_t y = scaled(kept.y, size.height, kept.height);
    const int64_t width = std::max<int64_t>(1, scaled(all.width, size.width, kept.width));
    const int64_t height = std::max<int64_t>(1, scaled(all.height, size.height, kept.height));
    if (std::max({std::abs(x), std::abs(y), width, height}) > kMaxDrawnSide) {
      return RefuseSize(kept.size(), " is too small to be resized to", size,
                        NameOf(plan_.transforms_[transform_]),
                        "Crop larger parts of the image before it");
    }
    const ImageSize resized{static_cast<int>(width), static_cast<int>(height)};
    const Rect window{static_cast<int>(x), static_cast<int>(y), size.width, size.height};
    if (objects_ != nullptr) {
      objects_->ResizePart(Unmirrored(kept, all.size()), all.size(), Unmirrored(window, resized),
                           resized);
    }
    if (!resampled_) geometry_.box = all;
    Resample(resized, filter);
    geometry_.window = window;
  }

  void Resample(ImageSize size, const ResamplingFilter& filter) {
    geometry_.resized = size;
    geometry_.window = {0, 0, size.width, size.height};
    geometry_.antialias = filter.antialias;
    geometry_.interpolation = filter.interpolation;
    geometry_.resampler = filter.resampler;
    geometry_.mirrored_columns = geometry_.mirror_columns;
    geometry_.mirrored_rows = geometry_.mirror_rows;
    resampled_ = true;
  }

  // Completes the geometry, so that steps can follow. The resampler adds zeros around the image;
  // other padding takes a step.
  void CompleteGeometry() {
    if (!drawn_.steps.empty()) return;
    Rect& kept = frame();
    size_ = kept.size();
    const auto [left, right] = SpanOf(kept.x, kept.width, base().width);
    const auto [top, bottom] = SpanOf(kept.y, kept.height, base().height);
    const Rect needed{left, top, right - left, bottom - top};
    const bool zeros = padding_.mode == Padding::kConstant && padding_.fill == Fill{};
    if (!zeros && needed != kept) {
      const Rect window{kept.x - left, kept.y - top, kept.width, kept.height};
      drawn_.steps.push_back({Reframe{window, padding_.mode, padding_.fill}, padding_.transform});
      const Mirror mirror{geometry_.mirror_columns, geometry_.mirror_rows};
      if (mirror.columns || mirror.rows) drawn_.steps.push_back({mirror, padding_.transform});
      geometry_.mirror_columns = geometry_.mirror_rows = false;
      kept = needed;
    }
    if (!resampled_) Resample(geometry_.box.size(), {});
  }

  void Push(const Step& step) {
    if (drawn_.placed && drawn_.steps.empty()) ShowPart(*drawn_.placed, geometry_);
    CompleteGeometry();
    drawn_.steps.push_back({step, transform_});
  }

  template <typename T>
  void Move(const T& transform, RandomStream& random) {
    const Affine step = DrawAffine(transform, size(), random);
    if (objects_ != nullptr && step.noise) {
      status_ = Displace(*step.noise);
    } else if (objects_ != nullptr) {
      objects_->Map(MapOf(step, size()));
    }
    if (step.matrix != kNoMotion || step.divisor != Affine().divisor || step.noise) Push(step);
  }

  Status Displace(const ElasticNoise& noise) {
    if (objects_->boxes().empty()) return {};
    ASSIGN_OR_RETURN(const Displacement by, context_->displacements->Get(noise, size()));
    objects_->Displace(by);
    return {};
  }

  template <typename T>
  void Policy(const T& policy, RandomStream& random) {
    CompleteGeometry();
    const size_t before = drawn_.steps.size();
    DrawPolicy(policy, size_, random, drawn_.steps);
    for (size_t i = before; i < drawn_.steps.size(); ++i) drawn_.steps[i].transform = transform_;
    if (objects_ == nullptr) return;
    for (const DrawnStep& step : std::span(drawn_.steps).subspan(before)) {
      if (const auto* affine = std::get_if<Affine>(&step.step)) {
        objects_->Map(MapOf(*affine, size_));
      }
    }
  }

  void RefuseSize(const RandomCrop& t, ImageSize size) {
    RefuseSize(size, ", padding included, is smaller than", {t.width, t.height}, "RandomCrop",
               "Set pad_if_needed, add padding, or resize before it");
  }
  void RefuseSize(const PadTo&, ImageSize size) {
    RefuseSize(size, " is larger than", plan_.output_, "PadTo",
               "Give a larger size, or Resize before it, with max_size");
  }
  void RefuseSize(ImageSize size, const char* how, ImageSize than, const char* name,
                  const char* advice) {
    const auto text = [](ImageSize s) {
      return std::to_string(s.height) + " × " + std::to_string(s.width);
    };
    status_ = Error{.code = Code::kInvalidArgument,
                    .cause = "an image of " + text(size) + " pixels" + how + " the " + text(than) +
                             " of transforms[" + std::to_string(transform_) + "], " + name,
                    .advice = advice};
  }

  struct Surroundings {
    Padding mode = Padding::kConstant;
    Fill fill{};
    uint32_t transform = 0;  // the transform that requested the padding
  };

  const Plan& plan_;
  const DrawKey& key_;
  DrawnSample& drawn_;
  Geometry& geometry_;
  ViewContext* const context_;   // null if there are no objects
  MovedObjects* const objects_;  // likewise
  const ImageSize image_;
  const Canvas* const canvas_;         // null unless the image is its tile
  std::optional<DrawnMosaic> mosaic_;  // once it is drawn
  bool resampled_ = false;
  Surroundings padding_;                // of base()
  ImageSize size_;                      // of the current image, if there are steps
  uint32_t transform_ = 0;              // the transform that is being applied
  std::array<uint16_t, 32> of_kind_{};  // how many transforms of each kind of draws came before it
  Status status_;
};

Status Plan::Draw(const DrawKey& key, ImageSize image, DrawnSample& drawn,
                  ViewContext* context) const {
  DrawKey of_image = key;
  if (pastes_others()) of_image.view = key.part;  // the other image has draws of its own
  Drawing drawing(*this, of_image, image, drawn, context);
  const std::span<const Transform> all(transforms_);
  const size_t count = has_canvas_ ? std::max<size_t>(canvas_at_, mosaic_ ? 1 : 0) : all.size();
  for (const Transform& each : all.first(count)) drawing.ApplyNext(each);
  Status status = drawing.TakeStatus();
  if (pastes_others()) {
    const Rect whole{0, 0, drawn.size.width, drawn.size.height};
    drawn.canvas = {whole, whole, whole, parts()};
  }
  return status;
}

// Draws what follows once all images are on the canvas.
Status Plan::DrawCanvas(ViewContext& context, bool has_objects) const {
  const Canvas canvas = *context.drawn.canvas;
  Drawing drawing(*this, context.row, canvas.tile.size(), context.drawn,
                  has_objects ? &context : nullptr, &canvas);
  if (!mosaic_) drawing.ContinueAt(canvas_at_);
  for (size_t i = mosaic_ ? 0 : canvas_at_; i < transforms_.size(); ++i) {
    drawing.ApplyNext(transforms_[i]);
    if (mosaic_ && i == canvas_at_) drawing.CutFromCanvas(*mosaic_);
  }
  return drawing.TakeStatus();
}

RowSamples Plan::SamplesOf(const DrawKey& key, uint64_t sample, uint64_t samples,
                           uint32_t attempt) const {
  RowSamples row;
  row.parts[0].sample = sample;
  if (parts() == 1) return row;
  // A stream number that no transform has; see also kOrderStream.
  constexpr uint32_t kPartsStream = 0xfffc;
  RandomStream random(key, kPartsStream);
  for (uint32_t i = 0; i < attempt * (parts() - 1); ++i) (void)random.Bits();
  if (!mosaic_) {
    row.parts[row.count++] = {.part = 1, .sample = random.Below(samples)};
    return row;
  }
  RandomStream geometry(key, 0);
  const DrawnMosaic drawn = DrawMosaic(*mosaic_, geometry);
  if (!drawn.several) return row;
  for (uint32_t part = 1; part < parts(); ++part) {
    const uint64_t other = random.Below(samples);
    // In a Mosaic of nine others are placed next to it; on a canvas its objects may be pasted.
    const bool is_seen = in_order() || !IsEmpty(PlaceImage(*mosaic_, drawn, part, {1, 1}).part);
    if (!is_seen) continue;
    row.parts[row.count++] = {.part = part, .sample = other};
  }
  return row;
}

}  // namespace stoker
