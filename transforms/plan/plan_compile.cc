// Plan::Compile: checks a list of transforms and assigns each one to a pass.
#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "core/result/try.h"
#include "transforms/augment/geometry/affine.h"
#include "transforms/decode/decoding.h"
#include "transforms/decode/image_info.h"
#include "transforms/plan/draw.h"
#include "transforms/plan/moved_objects.h"
#include "transforms/plan/plan.h"
#include "transforms/resize/row_format.h"
#include "transforms/spec/transform_table.h"

namespace stoker {

namespace {

template <typename T>
bool Is(const Transform& transform) {
  return std::holds_alternative<T>(transform);
}

template <typename T, typename... These>
constexpr bool kIsOneOf = (std::is_same_v<T, These> || ...);

// Returns p; 1 for a transform without one.
double ProbabilityOf(const Transform& transform) {
  return std::visit(
      [](const auto& t) {
        if constexpr (requires { double{t.p}; }) return t.p;
        return 1.0;
      },
      transform);
}

// Whether it changes the pixels of each image. (One with a p below 1 leaves some as they are.)
bool AlwaysChangesPixels(const Transform& transform) {
  if (const auto* choice = std::get_if<RandomChoice>(&transform)) {
    const auto changes_or_is_never_chosen = [&](const Transform& held) {
      const auto index = static_cast<size_t>(&held - choice->transforms.data());
      return AlwaysChangesPixels(held) || (!choice->p.empty() && choice->p[index] == 0);
    };
    return std::ranges::all_of(choice->transforms, changes_or_is_never_chosen);
  }
  if (ProbabilityOf(transform) < 1) return false;
  const std::vector<Transform>* const held = HeldBy(transform);
  if (held != nullptr) return std::ranges::any_of(*held, &AlwaysChangesPixels);
  return RowOf(transform).acts_on == ActsOn::kPixels;
}

// Whether `test` is true of the transform, or of one that it holds.
template <typename Test>
bool AnyOf(const Transform& transform, const Test& test) {
  const std::vector<Transform>* const held = HeldBy(transform);
  if (held == nullptr) return test(transform);
  return std::ranges::any_of(*held, [&](const Transform& each) { return AnyOf(each, test); });
}

bool Resamples(const Transform& transform) {
  return AnyOf(transform, [](const Transform& each) { return FilterOf(each).has_value(); });
}

// Whether it resizes images to sizes that differ from draw to draw.
bool DrawsSize(const Transform& transform) {
  return Is<RandomShortestSize>(transform) || Is<ScaleJitter>(transform);
}

// Whether it may move pixels, or holds a transform that does.
bool MovesPixels(const Transform& transform) {
  if (const std::vector<Transform>* held = HeldBy(transform)) {
    return std::ranges::any_of(*held, &MovesPixels);
  }
  if (RowOf(transform).acts_on == ActsOn::kGeometry) return true;
  return std::visit(
      []<typename T>(const T&) {
        return kIsOneOf<T, RandomAffine, RandomRotation, RandomPerspective, ElasticTransform,
                        RandomZoom, RandomTranslation, RandomShear, AutoAugment, RandAugment,
                        TrivialAugmentWide>;
      },
      static_cast<const AnyTransform&>(transform));
}

// Whether it pastes objects, and does nothing else.
bool OnlyPastes(const Transform& transform) {
  const std::vector<Transform>* const held = HeldBy(transform);
  return held == nullptr ? Is<CopyPaste>(transform) : std::ranges::all_of(*held, &OnlyPastes);
}

// Whether the images of a Mosaic are put on a canvas.
bool HasCanvas(std::span<const Transform> transforms) {
  return transforms.size() > 1 && OnlyPastes(transforms[1]);
}

// Returns why a transform cannot follow a Mosaic, whose images are changed one after another: it
// reads other pixels than its own, or moves them. nullopt if it can.
std::optional<Refusal> RefusalAfterMosaic(const Transform& transform) {
  if (const std::vector<Transform>* held = HeldBy(transform)) {
    for (const Transform& each : *held) {
      std::optional<Refusal> refusal = RefusalAfterMosaic(each);
      if (!refusal) continue;
      refusal->cause = std::string(NameOf(each)) + ": " + refusal->cause;
      return refusal;
    }
    return std::nullopt;
  }
  return std::visit(
      []<typename T>(const T& t) -> std::optional<Refusal> {
        if constexpr (kIsOneOf<T, ColorJitter, RandomPhotometricDistort>) {
          if (t.contrast == std::array{1.0, 1.0}) return std::nullopt;
          return Refusal{
              "contrast depends on all pixels of a row, and a Mosaic's images are changed "
              "one by one",
              "Leave contrast out, or set it to (1, 1)"};
        } else if constexpr (kIsOneOf<T, RandomHorizontalFlip, RandomVerticalFlip, RandomHSV,
                                      RandomGrayscale, RandomSolarize, RandomInvert,
                                      RandomPosterize, Normalize, SanitizeBoundingBoxes,
                                      ClampBoundingBoxes, ConvertBoundingBoxFormat>) {
          return std::nullopt;
        } else if constexpr (std::is_same_v<T, CopyPaste>) {
          if (t.mode == CopyPaste::Mode::kMixup) return std::nullopt;  // Follow says why not
          return Refusal{"it pastes onto the canvas of a Mosaic before others change its images",
                         "Put it directly after the Mosaic"};
        } else {
          return Refusal{
              "it needs all pixels of a row, and a Mosaic's images are changed one by one",
              "Leave it out: flips, transforms that change each pixel's colour by itself, "
              "and those of boxes can follow a Mosaic"};
        }
      },
      static_cast<const AnyTransform&>(transform));
}

// The padding around an image, and the index of the transform that adds it.
struct Surroundings {
  Padding mode = Padding::kConstant;
  Fill fill{};
  size_t transform = 0;

  // Whether the resampler adds `other` along with it.
  bool Takes(const Surroundings& other) const {
    return mode == Padding::kConstant && other.mode == mode && other.fill == fill;
  }
  void TakeNone() { mode = Padding::kEdge; }
};

// The compiler's knowledge of the images before a transform.
class Images {
  friend class Compiler;

  std::optional<ImageSize> size_;   // if they have one size
  std::optional<ImageSize> most_;   // the most that they have, if anything limits it
  std::optional<size_t> resample_;  // index of the resampling
  std::optional<size_t> crop_;      // index of the last crop since the start or first resampling
  std::optional<size_t> step_;      // index of the last transform that cannot be fused
  std::optional<size_t> colour_;    // likewise, of padding that a resampling can follow
  std::optional<size_t> pastes_;    // index of the CopyPaste
  std::optional<size_t> canvas_;    // likewise, if several images are there before it
  std::optional<Surroundings> surrounded_;  // the last padding of the image
};

// Walks through the list and tracks the properties of the images before each transform.
class Compiler : private Images {
 public:
  Compiler(const std::vector<Transform>& transforms, const PlanOptions& options)
      : transforms_(transforms), options_(options) {}

  // Returns the size of the output.
  Result<ImageSize> Run() {
    if (const size_t count = CountOf(transforms_); count > kMaxTransforms) {
      return Error{Code::kInvalidArgument, std::to_string(count) + " transforms; at most " +
                                               std::to_string(kMaxTransforms) + " are possible"};
    }
    for (index_ = 0; index_ < transforms_.size(); ++index_) {
      const Transform& transform = transforms_[index_];
      if (const auto refusal = CheckTransform(transform, options_.dtype)) {
        return Refuse(index_, refusal->cause, refusal->advice);
      }
      if (CountOf(options_.channels) == 1) {
        if (const auto refusal = CheckForGray(transform)) {
          return Refuse(index_, refusal->cause, refusal->advice);
        }
      }
      TRY(CheckPosition(transform));
      if (index_ > canvas_.value_or(0) && Is<Mosaic>(transforms_.front())) {
        if (const auto refusal = RefusalAfterMosaic(transform)) {
          return Refuse(index_, refusal->cause, refusal->advice);
        }
      }
      TRY(std::visit([this](const auto& t) { return Follow(t); }, transform));
      if (options_.decode_on_device) TRY(CheckOnDevice(transform));
      sites_.push_back(SiteOf(transform));
      NoteTile(transform);
    }
    if (!TakesSteps(options_)) TRY(CheckWide());
    if (!pad_to_) FinishTile();
    if (size_) return *size_;
    const auto* const resize = resample_ ? std::get_if<Resize>(&transforms_[*resample_]) : nullptr;
    if (resize != nullptr && resize->height == 0) {
      const std::string sets = resize->size != 0 ? "size = " + std::to_string(resize->size) +
                                                       " sets only the shorter side"
                                                 : "max_size sets only the longer side";
      return Refuse(*resample_, sets + ", so the images of a batch would differ in size",
                    "Add a CenterCrop after it, or give height and width instead of size; or add "
                    "PadTo, if images may differ in size");
    }
    if (resample_ && DrawsSize(transforms_[*resample_])) {
      return Refuse(*resample_, "it draws a size for each image, and those of a batch would differ",
                    "Add a RandomCrop or CenterCrop after it; or PadTo, if images may differ in "
                    "size");
    }
    return Error{.code = Code::kInvalidArgument,
                 .cause = "no transform makes all images the same size",
                 .advice =
                     "Add RandomResizedCrop, or Resize and CenterCrop; or PadTo, if images "
                     "may keep their sizes"};
  }

  std::optional<size_t> normalize() const { return normalize_; }
  std::optional<size_t> pad_to() const { return pad_to_; }
  bool pastes() const { return pastes_.has_value(); }
  std::optional<size_t> canvas() const { return canvas_; }
  // Returns the most pixels along each side that a tile has. If its images differ in size, they are
  // at most as large as the output.
  ImageSize tile(ImageSize output) const {
    if (!tile_differs_) return tile_;
    return Largest(tile_, output);
  }
  std::vector<ExecutionSite> TakeSites() { return std::move(sites_); }

 private:
  // Returns the site of the transform just added. Transforms after a step cannot be fused.
  ExecutionSite SiteOf(const Transform& transform) const {
    if (Is<RandomErasing>(transform) || Is<PadTo>(transform)) return ExecutionSite::kRow;
    if (Is<Normalize>(transform)) return ExecutionSite::kFused;
    const bool turns = Is<Mosaic>(transform) && step_;
    if (RowOf(transform).acts_on == ActsOn::kObjects || (Resamples(transform) && !turns)) {
      return ExecutionSite::kFused;
    }
    return step_ || colour_ ? ExecutionSite::kTile : ExecutionSite::kFused;
  }

  // ---- The size of the tile.

  // Called for the transform just added. Padding and crops before the first transform of pixels
  // produce one tile, which has the size that they leave.
  void NoteTile(const Transform& transform) {
    if (sites_.back() != ExecutionSite::kTile) return;
    if (ChangesPixels(transform)) tile_has_pixels_ = true;
    if (tile_has_pixels_) GrowTile();
  }

  // Called after the last transform of the tile, before a PadTo changes size_.
  void FinishTile() {
    if (step_ || colour_) GrowTile();
  }

  void GrowTile() {
    if (!size_) {
      tile_differs_ = true;
      return;
    }
    tile_ = Largest(tile_, *size_);
  }

  // Checks that transforms of the finished row come last, and that no pixels move after the boxes'
  // format.
  Status CheckPosition(const Transform& transform) const {
    if (RowOf(transform).acts_on == ActsOn::kObjects) return {};
    if (converted_ && MovesPixels(transform)) return RefuseBefore(*converted_);
    const bool normalizes = Is<Normalize>(transform);
    const bool finishes = Is<RandomErasing>(transform) || Is<PadTo>(transform);
    if (normalize_ && !finishes) return RefuseBefore(*normalize_);
    if (pad_to_ && !normalizes) return RefuseBefore(*pad_to_);
    if (erasing_ && !finishes && !normalizes) return RefuseBefore(*erasing_);
    return {};
  }

  // Only the pixels' places change in images of 16 bits or of other channels.
  Status CheckWide() const {
    for (size_t i = 0; i < transforms_.size(); ++i) {
      if (sites_[i] == ExecutionSite::kFused && !Is<Mosaic>(transforms_[i])) continue;
      const bool wide = options_.dtype == DType::kU16;
      return Refuse(
          i,
          std::string("it does not compute with ") +
              (wide ? NameOf(options_.dtype) : "channels \"" + NameOf(options_.channels) + "\""),
          std::string("Ask for ") +
              (wide ? "dtype uint8 or float32" : "channels \"rgb\" or \"gray\"") +
              ", or only for resizing, crops and flips");
    }
    return {};
  }

  // Refuses transforms with which a device could decode no image.
  Status CheckOnDevice(const Transform& transform) const {
    const auto refuse = [this](const std::string& cause) {
      return Refuse(index_, cause, kLetWorkersDecode);
    };
    if (Is<PadTo>(transform)) return refuse("a device that decodes images does not pad them");
    std::optional<ResamplingFilter> filter;
    const auto is_in_steps = [&](const Transform& t) {
      filter = FilterOf(t);
      return filter && InSteps(filter->interpolation, filter->resampler);
    };
    if (AnyOf(transform, is_in_steps)) {
      return refuse("a device that decodes images does not resample them by " +
                    TextOf(filter->interpolation, filter->resampler));
    }
    if (!AlwaysChangesPixels(transform)) return {};
    return refuse("workers change the pixels, so a device cannot decode them");
  }

  Error RefuseBefore(size_t index) const {
    const std::string before = NameOf(transforms_[index]), after = NameOf(transforms_[index_]);
    return Refuse(index, NameAt(index_) + " comes after it",
                  before == after ? "Remove one of the two" : "Move " + before + " after " + after);
  }

  // ---- Geometry.

  Status Follow(const Resize& t) {
    if (t.height != 0) {
      SetSize({t.width, t.height});
    } else if (size_) {  // cropped before, so all images have the same shape
      SetSize(SizeAfter(t, *size_));
      if (std::max(size_->width, size_->height) > kMaxSidePixels) {
        return Refuse(
            index_,
            "size = " + std::to_string(t.size) + " makes images of " + SizeText(*size_) + " pixels",
            "Give a smaller size");
      }
    } else {
      most_ = Square(t.max_size);
    }
    return Resample();
  }

  Status Follow(const RandomShortestSize& t) { return ResampleToDrawn(Square(t.max_size)); }
  // Sides are products of floats, which may round up.
  Status Follow(const ScaleJitter& t) {
    const double times = t.scale_range[1] * (1 + 1e-6);
    return ResampleToDrawn(Times({t.width, t.height}, times));
  }

  Status Follow(const CenterCrop& t) {
    const ImageSize size{t.width, t.height};
    // A crop that is larger than a part of the image takes a step.
    if (crop_ && !size_) return RefuseUnknown();
    if (crop_ && Larger(size, *size_)) {
      return Refuse(index_,
                    SizeText(size) + " is larger than the " + SizeText(*size_) + " that " +
                        NameAt(*crop_) + " leaves: it would only add a black border",
                    "Remove one of the two crops");
    }
    // Zeros around padding in a colour take a step.
    const bool may_pad = !size_ || Larger(size, *size_);
    if (may_pad && surrounded_ && !surrounded_->Takes({})) step_ = index_;
    Crop(size);
    return {};
  }

  Status Follow(const RandomResizedCrop& t) {
    SetSize({t.width, t.height});
    return Resample();
  }

  Status Follow(const Pad& t) {
    if (t.padding != Margins{}) {
      TRY(CheckPaddingOfObjects(t.padding_mode));
      if (Status s = Surround(t.padding_mode, t.fill); !s) return s;
    }
    if (size_) size_ = Padded(*size_, t.padding);
    if (most_) most_ = Padded(*most_, t.padding);
    if (size_ && Larger(*size_, {kMaxSidePixels, kMaxSidePixels})) {
      return Refuse(index_, "it makes images of " + SizeText(*size_) + " pixels",
                    "Give less padding");
    }
    if (crop_) crop_ = index_;
    return {};
  }

  Status Follow(const RandomCrop& t) {
    const ImageSize size{t.width, t.height};
    if (size_ && !t.pad_if_needed && Larger(size, Padded(*size_, t.padding))) {
      return Refuse(index_,
                    SizeText(size) + " is larger than the images here, which have " +
                        SizeText(Padded(*size_, t.padding)) + " pixels with their padding",
                    "Set pad_if_needed, add padding, or give a smaller size");
    }
    if (t.pad_if_needed || t.padding != Margins{}) {
      TRY(CheckPaddingOfObjects(t.padding_mode));
      if (Status s = Surround(t.padding_mode, t.fill); !s) return s;
    }
    Crop(size);
    return {};
  }

  // After a crop or a transform of pixels it would take a step on an image of any size.
  Status Follow(const RandomZoomOut& t) {
    const bool other = surrounded_ && !surrounded_->Takes({Padding::kConstant, t.fill});
    const std::optional<size_t> padded =
        other && size_ ? std::optional(surrounded_->transform) : std::nullopt;
    if (const std::optional<size_t> before = crop_ ? crop_ : step_ ? step_ : padded) {
      return Refuse(index_, "it makes images of any size after " + NameAt(*before),
                    std::string("Move it before ") + NameOf(transforms_[*before]));
    }
    TRY(Surround(Padding::kConstant, t.fill));
    size_.reset();
    if (most_) most_ = Times(*most_, t.side_range[1]);
    return {};
  }

  Status Follow(const RandomIoUCrop&) {
    TRY(CheckBoxes());
    size_.reset();
    crop_ = index_;
    return {};
  }
  Status Follow(const RandomSizeCrop& t) {
    size_.reset();
    most_ = most_
                ? ImageSize{std::min(most_->width, t.max_size), std::min(most_->height, t.max_size)}
                : ImageSize{t.max_size, t.max_size};
    crop_ = index_;
    return {};
  }

  // Handles all other transforms. A transform of pixels needs an image of one size; a flip, for
  // example, changes neither the size nor the surroundings of an image.
  template <typename T>
  Status Follow(const T& t) {
    return RowOf(Transform(t)).acts_on == ActsOn::kPixels ? OnTile() : Status();
  }
  Status Follow(const SanitizeBoundingBoxes&) { return CheckBoxes(); }
  Status Follow(const ClampBoundingBoxes&) { return CheckBoxes(); }
  Status Follow(const ConvertBoundingBoxFormat& t) {
    converted_ = index_;
    if (t.normalized && pad_to_ && std::get<PadTo>(transforms_[*pad_to_]).multiple != 0) {
      return Refuse(index_,
                    "boxes are written before the batch is complete, and the size of its rows is "
                    "that of its largest image",
                    "Move it before PadTo, to divide by the size of the image");
    }
    return CheckBoxes();
  }
  Status Follow(const GaussianBlur& t) {
    TRY(OnTile());
    if (!size_) return {};  // each image is checked
    if (t.kernel_width / 2 < size_->width && t.kernel_height / 2 < size_->height) return {};
    return Refuse(index_,
                  "a kernel of " + SizeText({t.kernel_width, t.kernel_height}) +
                      " is too large for images of " + SizeText(*size_) + " pixels",
                  "Give a smaller kernel_size: half of it must lie within the image");
  }

  // Above about two thirds the drawn corners may form no convex quadrilateral, and the map shows
  // parts of the image twice.
  Status Follow(const RandomPerspective& t) {
    constexpr double kMostOfShapes = 0.5;
    if (options_.geometry) {
      return Refuse(index_,
                    "the geometry of a row is an affine map, and its map is a projective one",
                    "Leave geometry out, or use RandomAffine");
    }
    if (options_.draws_shapes && t.distortion_scale > kMostOfShapes) {
      return Refuse(index_,
                    "it may show parts of an image twice, and a mask of shapes shows them once",
                    "Give a distortion_scale of at most 0.5");
    }
    return OnTile();
  }

  Status Follow(const ElasticTransform&) {
    if (options_.geometry) {
      return Refuse(index_,
                    "the geometry of a row is an affine map, and it moves each pixel differently",
                    "Leave geometry out, or use RandomAffine");
    }
    if (options_.draws_shapes) {
      return Refuse(index_, "masks of shapes are drawn after maps that keep lines straight",
                    "Leave it out, or read masks of files");
    }
    return OnTile();
  }

  Status Follow(const CopyPaste& t) {
    if (pastes_) {
      return Refuse(index_, NameAt(*pastes_) + " pastes objects already", "Remove one of the two");
    }
    if (options_.pieces.size() > 1) {
      return Refuse(index_, "samples have more than one image, and shapes in one of them",
                    "Read samples of one image, with masks that are drawn from shapes");
    }
    TRY(CheckBoxes());
    if (!options_.draws_shapes) {
      return Refuse(index_, "samples have no shapes here",
                    "Ask the source for masks that are drawn from polygons or RLE");
    }
    if (t.mode == CopyPaste::Mode::kMixup) TRY(TakeAnother());
    pastes_ = index_;
    return OnTile();
  }

  // Checks a CopyPaste of objects of another image, which is made by the transforms before it.
  Status TakeAnother() {
    if (Is<Mosaic>(transforms_.front())) {
      return Refuse(index_,
                    "the other image would be a Mosaic of its own, and a row be made of two "
                    "Mosaics",
                    "Use mode \"flip\" directly after the Mosaic, or leave the Mosaic out");
    }
    const auto is_another = [](const Transform& each) {
      const auto* const paste = std::get_if<CopyPaste>(&each);
      return paste == nullptr || paste->mode != CopyPaste::Mode::kMixup;
    };
    if (AnyOf(transforms_[index_], is_another)) {
      return Refuse(index_, "it holds other transforms, which would not change the other image",
                    "Let it hold a CopyPaste with mode \"mixup\" alone");
    }
    TRY(CheckSeveral());
    if (converted_) return RefuseBefore(*converted_);
    if (!size_) {
      return Refuse(index_, "images differ in size here, and both images must have the same one",
                    "Move it after RandomResizedCrop, or after Resize to a height and width, or "
                    "CenterCrop");
    }
    canvas_ = index_;
    return {};
  }

  Status Follow(const RandomApply& t) {
    const Images before = *this;
    TRY(FollowAll(t.transforms));
    if (t.p < 1) Join(before);
    return {};
  }
  Status Follow(const RandomChoice& t) {
    const Images before = *this;
    std::optional<Images> after;
    for (const Transform& transform : t.transforms) {
      static_cast<Images&>(*this) = before;
      TRY(FollowAll({&transform, 1}));
      if (after) Join(*after);
      after = static_cast<const Images&>(*this);
    }
    return {};
  }
  Status Follow(const RandomOrder& t) { return FollowAll(t.transforms); }
  Status FollowAll(std::span<const Transform> held) {
    for (const Transform& transform : held) {
      TRY(std::visit([this](const auto& t) { return Follow(t); }, transform));
    }
    return {};
  }

  // From here on, an image may have come one way or the other.
  void Join(const Images& other) {
    if (size_ != other.size_) size_.reset();
    most_ = most_ && other.most_ ? std::optional(Largest(*most_, *other.most_)) : std::nullopt;
    for (const auto member :
         {&Images::resample_, &Images::crop_, &Images::step_, &Images::colour_, &Images::pastes_}) {
      if (!(this->*member)) this->*member = other.*member;
    }
    if (!surrounded_) {
      surrounded_ = other.surrounded_;
    } else if (other.surrounded_ && !surrounded_->Takes(*other.surrounded_)) {
      surrounded_->TakeNone();  // which of the two is there is drawn
    }
  }

  // ---- Transforms of the finished row.

  Status Follow(const Normalize& t) {
    const auto channels = static_cast<size_t>(CountOf(options_.channels));
    for (const size_t given : {t.mean.size(), t.std.size()}) {
      if (given == 1 || given == channels || (channels == 1 && given == 3)) continue;
      return Refuse(index_,
                    "it has numbers for " + std::to_string(given) + " channels, and images have " +
                        std::to_string(channels),
                    "Give one for each channel, or one for all");
    }
    for (size_t i = 0; i < index_; ++i) {
      const auto* erasing = std::get_if<RandomErasing>(&transforms_[i]);
      if (erasing != nullptr && erasing->noise) {
        return Refuse(i, "its normal numbers would be normalized again by " + NameAt(index_),
                      "Move it after Normalize");
      }
    }
    normalize_ = index_;
    return {};
  }
  Status Follow(const RandomErasing&) {
    if (!size_ && !IsBounded()) return RefuseSizes();
    erasing_ = index_;
    return {};
  }
  Status Follow(const PadTo& t) {
    if (canvas_) {
      return Refuse(index_, NameAt(*canvas_) + " takes objects of an image of the same size",
                    "Use Pad, which adds padding to images of one size");
    }
    const ImageSize given{t.width, t.height};
    ASSIGN_OR_RETURN(const ImageSize size, t.multiple != 0 ? RoundedUp(t.multiple) : given);
    if (size_ && Larger(*size_, size)) {
      return Refuse(index_,
                    SizeText(size) + " is smaller than the images here, which have " +
                        SizeText(*size_) + " pixels",
                    "Give a larger size");
    }
    if (normalize_ && t.fill != Fill{}) {
      return Refuse(index_, "fill is not normalized by " + NameAt(*normalize_) + " before it",
                    "Move it before Normalize, or leave fill out: the padding is zero then");
    }
    pad_to_ = index_;
    FinishTile();
    size_ = size;
    return {};
  }

  // Returns the most that a row of the batch's largest image has.
  Result<ImageSize> RoundedUp(int multiple) const {
    if (options_.defer_to_device) {
      return Refuse(index_, "a device has rows of one size for all batches",
                    "Give height and width, or let the program copy batches to it");
    }
    if (!most_) {
      return Refuse(index_, "no transform before it limits the size of images",
                    "Resize them with max_size before it, or crop them; or give height and width");
    }
    const auto round_up = [multiple](int side) {
      return static_cast<int>((int64_t{side} + multiple - 1) / multiple * multiple);
    };
    const ImageSize rows{round_up(most_->width), round_up(most_->height)};
    if (!Larger(rows, {kMaxSidePixels, kMaxSidePixels})) return rows;
    return Refuse(index_, "rows could have " + SizeText(rows) + " pixels",
                  "Limit the size of images more, or give a smaller multiple");
  }

  // ---- Several images.

  Status CheckSeveral() const {
    if (options_.defer_to_device) {
      return Refuse(index_, "a device does not finish rows of several images",
                    "Let the program copy batches to the device");
    }
    if (!options_.geometry) return {};
    return Refuse(index_, "the geometry of a row is of one image", "Leave geometry out");
  }

  Status Follow(const Mosaic& t) {
    if (index_ != 0) {
      return Refuse(index_, NameAt(0) + " comes before it", "Put it first");
    }
    TRY(CheckSeveral());
    if (!options_.objects.empty()) TRY(CheckBoxes());
    SetSize({t.size, t.size});
    TRY(Resample());
    const bool turns = t.degrees != 0 || t.shear != 0 || t.perspective != 0;
    if (t.n > 4 && turns) {
      if (options_.pieces.size() > 1) {
        return Refuse(index_, "nine images are turned together, and masks of files are not",
                      "Leave out degrees, shear and perspective, or the masks");
      }
      canvas_ = 0;
    }
    if (HasCanvas(transforms_)) canvas_ = 1;
    if (!turns && !canvas_) return {};
    step_ = index_;
    const int most = static_cast<int>(std::ceil(t.size * (1 + t.scale))) + 1;
    if (!canvas_) {
      tile_ = {most, most};  // of one of the images, with edges repeated
    } else if (turns) {
      tile_ = {2 * most, 2 * most};
    } else {  // the row, and what a mirror of the canvas moves into it
      tile_ = {static_cast<int>(std::ceil(t.size * (1 + 2 * t.translate))) + 2, t.size};
    }
    if (turns && !AffineScratchBytes(tile_).ok()) {
      return Refuse(index_, "images of " + SizeText(tile_) + " pixels are too large to be turned",
                    "Give a smaller size or scale, or leave out degrees, shear and perspective");
    }
    return {};
  }

  // ----

  // The size of images that have one size from here on.
  void SetSize(ImageSize size) { size_ = most_ = size; }
  // Sides of at most `side` pixels; nullopt if it is 0.
  static std::optional<ImageSize> Square(int side) {
    return side != 0 ? std::optional(ImageSize{side, side}) : std::nullopt;
  }
  static ImageSize Times(ImageSize size, double times) {
    const auto larger = [times](int side) {
      return static_cast<int>(
          std::clamp(side * times, 1.0, kMaxSidePixels + 1.0));  // PadTo refuses more
    };
    return {larger(size.width), larger(size.height)};
  }
  static ImageSize Largest(ImageSize a, ImageSize b) {
    return {std::max(a.width, b.width), std::max(a.height, b.height)};
  }
  static bool Larger(ImageSize a, ImageSize b) { return a.width > b.width || a.height > b.height; }
  static ImageSize Padded(ImageSize size, const Margins& by) {
    return {size.width + by.left + by.right, size.height + by.top + by.bottom};
  }

  void Crop(ImageSize size) {
    crop_ = index_;
    SetSize(size);
  }

  Status CheckBoxes() const {
    for (const ObjectField& field : options_.objects) {
      if (field.kind == ObjectField::Kind::kBoxes) return {};
    }
    return Refuse(index_, "samples have no boxes here",
                  "Read samples that have boxes, or remove it");
  }

  // Pixels that are repeated around the image show objects that have no boxes.
  Status CheckPaddingOfObjects(Padding mode) const {
    const bool moved = std::ranges::any_of(options_.objects, [](const ObjectField& field) {
      return field.kind != ObjectField::Kind::kValue;
    });
    if (mode == Padding::kConstant || !(moved || options_.draws_shapes)) return {};
    return Refuse(index_, "its padding would show objects again, without their boxes or keypoints",
                  "Use \"constant\" padding");
  }

  // The resampler adds zeros around the image, but only around all of it. Other padding around
  // padding takes a step, which needs an image of known size.
  Status Surround(Padding mode, const Fill& fill) {
    const bool constant = mode == Padding::kConstant;
    if (crop_ && !size_) return RefuseUnknown();
    const Surroundings by{mode, fill, index_};
    const bool other = surrounded_ && !surrounded_->Takes(by);
    if (other && !size_) {
      return Refuse(index_, "it pads a padded image in another way, and images differ in size here",
                    "Pad once, or crop or resize before it");
    }
    surrounded_ = by;
    if (crop_ || other || !constant) {
      step_ = index_;
    } else if (fill != Fill{}) {
      colour_ = index_;
    }
    return {};
  }

  // Returns whether images that differ in size are at most as large as the output: a PadTo follows,
  // and no transform before it makes them smaller.
  bool IsBounded() const {
    for (size_t i = index_ + 1; i < transforms_.size(); ++i) {
      const Transform& t = transforms_[i];
      if (Is<PadTo>(t)) return true;
      const auto makes_smaller = [](const Transform& each) {
        return Is<CenterCrop>(each) || Is<RandomCrop>(each) || Is<RandomSizeCrop>(each) ||
               Is<RandomIoUCrop>(each) || FilterOf(each);
      };
      if (AnyOf(t, makes_smaller)) return false;
    }
    return false;
  }

  Status OnTile() {
    if (!size_ && !IsBounded()) return RefuseSizes();
    step_ = index_;
    return {};
  }

  // Returns the first transform from here on after which all images have one size and none
  // resamples, because a step must not come before a resampling; null if there is none.
  const Transform* NextToFixSizes() const {
    const Transform* fixes = nullptr;
    for (size_t i = index_ + 1; i < transforms_.size(); ++i) {
      const Transform& t = transforms_[i];
      if (Is<RandomSizeCrop>(t) || Is<RandomIoUCrop>(t) || Is<RandomZoomOut>(t) || DrawsSize(t)) {
        fixes = nullptr;
      }
      const auto* const resize = std::get_if<Resize>(&t);
      const bool resamples = FilterOf(t).has_value() && !DrawsSize(t);
      const bool gives_size = (resize != nullptr && resize->height != 0) ||
                              Is<RandomResizedCrop>(t) || Is<CenterCrop>(t) || Is<RandomCrop>(t);
      if (fixes == nullptr ? gives_size : resamples) fixes = &t;
    }
    return fixes;
  }

  Error RefuseUnknown() const {
    return Refuse(index_, "images differ in size after " + NameAt(*crop_) + ", and may be smaller",
                  "Resize them to a height and width before it");
  }

  Error RefuseSizes() const {
    const Transform* const fixes = NextToFixSizes();
    const std::string place = fixes != nullptr ? std::string(NameOf(*fixes))
                                               : "RandomResizedCrop, or after Resize to a height "
                                                 "and width, or CenterCrop";
    return Refuse(index_, "images differ in size here",
                  "Move it after " + place + "; or end the list with PadTo");
  }

  Status Resample() {
    if (resample_ && !crop_) {
      return Refuse(index_,
                    "a second resampling: " + NameAt(*resample_) +
                        " resamples already, and no crop follows it, so that it has no effect",
                    "Let one transform resample to the final size");
    }
    if (step_) {
      return Refuse(*step_,
                    NameAt(index_) + " resamples after it, so that it would have to run on " +
                        "the whole photograph",
                    "Move it after the resampling");
    }
    if (!resample_) {  // otherwise all of the image is resized, and still cropped
      if (surrounded_ && surrounded_->Takes({})) surrounded_.reset();  // zeros are resized as well
      if (surrounded_ && crop_) surrounded_->TakeNone();  // all is resized, because of the colour
      crop_.reset();
    }
    // The padding and this may be held by one transform, which has no site yet.
    for (size_t i = colour_ ? *colour_ + 1 : index_; i < index_; ++i) {
      sites_[i] = ExecutionSite::kFused;
    }
    resample_ = index_;
    return {};
  }

  // `most`: as most_.
  Status ResampleToDrawn(std::optional<ImageSize> most) {
    size_.reset();
    most_ = most;
    return Resample();
  }

  std::string NameAt(size_t index) const {
    return "transforms[" + std::to_string(index) + "], " + NameOf(transforms_[index]);
  }

  Error Refuse(size_t index, const std::string& cause, std::string advice) const {
    return {.code = Code::kInvalidArgument,
            .cause = NameAt(index) + ": " + cause,
            .advice = std::move(advice)};
  }

  const std::vector<Transform>& transforms_;
  const PlanOptions& options_;
  size_t index_ = 0;
  std::optional<size_t> normalize_;
  std::optional<size_t> erasing_;
  std::optional<size_t> pad_to_;
  std::optional<size_t> converted_;  // index of the last ConvertBoundingBoxFormat
  std::vector<ExecutionSite> sites_;
  bool tile_has_pixels_ = false;  // a transform has read or changed them
  bool tile_differs_ = false;     // in size, from image to image
  ImageSize tile_;
};

}  // namespace

Result<Plan> Plan::Compile(std::vector<Transform> transforms, const PlanOptions& options) {
  TRY(CheckPixelType(options.dtype));
  TRY(ParseChannels(NameOf(options.channels)));
  if (!options.pieces.empty() && options.pieces[0].is_mask()) {
    return Error{Code::kInvalidArgument, "the first piece of a sample is a mask, not an image"};
  }
  TRY(CheckObjectFields(options.objects));
  Compiler compiler(transforms, options);
  ASSIGN_OR_RETURN(ImageSize size, compiler.Run());
  Plan plan;
  plan.options_ = options;
  plan.output_ = size;
  plan.tile_ = compiler.tile(size);
  plan.sites_ = compiler.TakeSites();
  Normalize normalize;
  if (const std::optional<size_t> index = compiler.normalize()) {
    normalize = std::get<Normalize>(transforms[*index]);
    plan.normalize_index_ = *index;
    plan.normalize_ = normalize;
  }
  if (const std::optional<size_t> index = compiler.pad_to()) {
    plan.pad_to_ = std::get<PadTo>(transforms[*index]);
    plan.pad_to_index_ = *index;
    plan.pads_finished_ = compiler.normalize() && *compiler.normalize() < *index;
  }
  if (!transforms.empty() && Is<Mosaic>(transforms.front())) {
    plan.mosaic_ = std::get<Mosaic>(transforms.front());
  }
  for (size_t c = 0; c < std::max<size_t>(3, static_cast<size_t>(plan.channels())); ++c) {
    const float mean = ChannelOf(normalize.mean, c), std = ChannelOf(normalize.std, c);
    plan.scale_.push_back(static_cast<float>(1.0 / (255.0 * std)));
    plan.bias_.push_back(mean == 0 ? 0.0f : -mean / std);
  }
  plan.has_canvas_ = compiler.canvas().has_value();
  plan.canvas_at_ = compiler.canvas().value_or(0);
  plan.copies_ = compiler.pastes() && !plan.pastes_others() ? 2 : 1;
  plan.canvas_objects_ = options.objects;
  for (ObjectField& field : plan.canvas_objects_) field.normalized = false;
  plan.draws_by_boxes_ =
      compiler.pastes() || std::ranges::any_of(transforms, [](const Transform& t) {
        return AnyOf(t, &Is<RandomIoUCrop>);
      });
  plan.transforms_ = std::move(transforms);
  if (std::ranges::none_of(options.pieces, &Piece::is_mask)) return plan;
  std::vector<Plan> pieces;
  for (size_t i = 1; i < options.pieces.size(); ++i) {
    const Piece& piece = options.pieces[i];
    pieces.push_back(piece.is_mask() ? plan.OfMask(piece) : plan);
  }
  plan.pieces_ = std::move(pieces);
  return plan;
}

Result<Plan> Plan::CompileViews(std::vector<std::vector<Transform>> views,
                                const PlanOptions& options) {
  if (views.size() == 1) return Compile(std::move(views[0]), options);
  if (options.defer_to_device) {
    return Error{.code = Code::kUnimplemented, .cause = "a device cannot finish several views"};
  }
  if (!TakesSteps(options)) {
    return Error{.code = Code::kUnimplemented,
                 .cause =
                     "images of uint16, or of other channels than \"rgb\" and \"gray\", have "
                     "one view"};
  }
  if (std::ranges::any_of(options.pieces, &Piece::is_mask)) {
    return Error{.code = Code::kUnimplemented, .cause = "samples with masks have one view"};
  }
  if (!options.objects.empty()) {
    return Error{.code = Code::kUnimplemented, .cause = "samples with objects have one view"};
  }
  std::vector<Plan> plans;
  const auto in_view = [&](Error error) {
    error.cause = "views[" + std::to_string(plans.size()) + "]: " + error.cause;
    return error;
  };
  for (std::vector<Transform>& view : views) {
    Result<Plan> plan = Compile(std::move(view), options);
    if (!plan.ok()) return in_view(std::move(plan).error());
    if (plan->pads()) {
      return in_view({.code = Code::kUnimplemented,
                      .cause = "PadTo cannot be used with several views",
                      .advice = "Crop or resize the images of each view to one size"});
    }
    if (plan->parts() > 1) {
      return in_view({.code = Code::kUnimplemented,
                      .cause = "Mosaic cannot be used with several views",
                      .advice = "Use one list of transforms"});
    }
    plans.push_back(*std::move(plan));
  }
  Plan all = plans.front();
  all.views_ = std::move(plans);
  return all;
}

}  // namespace stoker
