// Plan::Compile: checks a list of transforms and assigns each one to a pass.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "core/try.h"
#include "transforms/decode/image_info.h"
#include "transforms/plan/draw.h"
#include "transforms/plan/plan.h"
#include "transforms/resize/row_format.h"
#include "transforms/spec/transform_table.h"

namespace stoker {

namespace {

constexpr size_t kMostTransforms = 1000;

template <typename T>
bool Is(const Transform& transform) {
  return std::holds_alternative<T>(transform);
}

// Walks through the list and tracks the properties of the images before each transform.
class Compiler {
 public:
  Compiler(const std::vector<Transform>& transforms, const PlanOptions& options)
      : transforms_(transforms), options_(options) {}

  // Returns the size of the output.
  Result<ImageSize> Run() {
    if (transforms_.size() > kMostTransforms) {
      return Error{Code::kInvalidArgument, std::to_string(transforms_.size()) +
                                               " transforms; at most " +
                                               std::to_string(kMostTransforms) + " are possible"};
    }
    for (place_ = 0; place_ < transforms_.size(); ++place_) {
      const Transform& transform = transforms_[place_];
      if (const auto refusal = CheckTransform(transform, options_.dtype)) {
        return Refuse(place_, refusal->cause, refusal->advice);
      }
      TRY(CheckPlace(transform));
      Status status = std::visit([this](const auto& t) { return Follow(t); }, transform);
      if (!status) return std::move(status).error();
      places_.push_back(PlaceOf(transform));
    }
    if (size_) return *size_;
    if (resample_) {
      return Refuse(
          *resample_,
          "size = " + std::to_string(std::get<Resize>(transforms_[*resample_]).size) +
              " sets only the shorter side, so the images of a batch would differ in size",
          "Add a CenterCrop after it, or give height and width instead of size");
    }
    return Error{.code = Code::kInvalidArgument,
                 .cause = "no transform makes all images the same size",
                 .advice = "Add RandomResizedCrop, or Resize and CenterCrop"};
  }

  std::optional<size_t> normalize() const { return normalize_; }
  std::vector<Place> TakePlaces() { return std::move(places_); }

 private:
  // For the transform just added. Transforms after a step cannot be fused.
  Place PlaceOf(const Transform& transform) const {
    if (Is<RandomErasing>(transform)) return Place::kRow;
    if (Is<Normalize>(transform)) return Place::kFused;
    return step_ ? Place::kTile : Place::kFused;
  }

  // Transforms of the finished row must come last.
  Status CheckPlace(const Transform& transform) const {
    if (normalize_ && !Is<RandomErasing>(transform)) return RefuseBefore(*normalize_);
    if (erasing_ && !Is<RandomErasing>(transform) && !Is<Normalize>(transform)) {
      return RefuseBefore(*erasing_);
    }
    return {};
  }

  Error RefuseBefore(size_t place) const {
    return Refuse(place, Named(place_) + " comes after it", "Move it to the end");
  }

  // ---- Geometry.

  Status Follow(const Resize& t) {
    if (t.size == 0) {
      size_ = ImageSize{t.width, t.height};
    } else if (size_) {  // cropped before, so all images have the same shape
      size_ = ShorterSideTo(t.size, *size_);
      if (std::max(size_->width, size_->height) > kMostSidePixels) {
        return Refuse(
            place_,
            "size = " + std::to_string(t.size) + " makes images of " + SizeText(*size_) + " pixels",
            "Give a smaller size");
      }
    }
    return Resample();
  }

  Status Follow(const CenterCrop& t) {
    const ImageSize size{t.width, t.height};
    if (crop_ && Larger(size, *size_)) {
      return Refuse(place_,
                    SizeText(size) + " is larger than the " + SizeText(*size_) + " that " +
                        Named(*crop_) + " leaves: it would only add a black border",
                    "Remove one of the two crops");
    }
    Crop(size);
    return {};
  }

  Status Follow(const RandomResizedCrop& t) {
    size_ = ImageSize{t.width, t.height};
    return Resample();
  }

  Status Follow(const Pad& t) {
    if (t.padding != Margins{}) {
      if (Status s = Surround(t.padding_mode, t.fill); !s) return s;
    }
    if (size_) size_ = Padded(*size_, t.padding);
    if (size_ && Larger(*size_, {kMostSidePixels, kMostSidePixels})) {
      return Refuse(place_, "it makes images of " + SizeText(*size_) + " pixels",
                    "Give less padding");
    }
    if (crop_) crop_ = place_;
    return {};
  }

  Status Follow(const RandomCrop& t) {
    const ImageSize size{t.width, t.height};
    if (size_ && !t.pad_if_needed && Larger(size, Padded(*size_, t.padding))) {
      return Refuse(place_,
                    SizeText(size) + " is larger than the images here, which have " +
                        SizeText(Padded(*size_, t.padding)) + " pixels with their padding",
                    "Set pad_if_needed, add padding, or give a smaller size");
    }
    if (t.pad_if_needed || t.padding != Margins{}) {
      if (Status s = Surround(t.padding_mode, t.fill); !s) return s;
    }
    Crop(size);
    return {};
  }

  // All other transforms. One that works on pixels needs an image of one size; a flip, say, changes
  // neither the size nor the surroundings of an image.
  template <typename T>
  Status Follow(const T& t) {
    return RowOf(t).acts_on == ActsOn::kPixels ? OnTile() : Status();
  }
  Status Follow(const GaussianBlur& t) {
    TRY(OnTile());
    if (t.kernel_width / 2 < size_->width && t.kernel_height / 2 < size_->height) return {};
    return Refuse(place_,
                  "a kernel of " + SizeText({t.kernel_width, t.kernel_height}) +
                      " is too large for images of " + SizeText(*size_) + " pixels",
                  "Give a smaller kernel_size: half of it must lie within the image");
  }

  // ---- Transforms of the finished row.

  Status Follow(const Normalize&) {
    for (size_t i = 0; i < place_; ++i) {
      const auto* erasing = std::get_if<RandomErasing>(&transforms_[i]);
      if (erasing != nullptr && erasing->noise) {
        return Refuse(i, "its normal numbers would be normalized again by " + Named(place_),
                      "Move it after Normalize");
      }
    }
    normalize_ = place_;
    return {};
  }
  Status Follow(const RandomErasing&) {
    if (!size_) return RefuseSizes();
    erasing_ = place_;
    return {};
  }

  // ----

  static bool Larger(ImageSize a, ImageSize b) { return a.width > b.width || a.height > b.height; }
  static ImageSize Padded(ImageSize size, const Margins& by) {
    return {size.width + by.left + by.right, size.height + by.top + by.bottom};
  }

  void Crop(ImageSize size) {
    crop_ = place_;
    size_ = size;
  }

  // The resampler adds zeros around the image, but only around all of it. Other padding around
  // padding takes a step, which needs an image of known size.
  Status Surround(Padding mode, const Fill& fill) {
    const bool constant = mode == Padding::kConstant;
    const bool other =
        surrounded_ && !(constant && surrounded_->first == mode && surrounded_->second == fill);
    if (other && !size_) {
      return Refuse(place_, "it pads a padded image in another way, and images differ in size here",
                    "Pad once, or crop or resize before it");
    }
    surrounded_ = {mode, fill};
    if (crop_ || other || !constant || fill != Fill{}) step_ = place_;
    return {};
  }

  Status OnTile() {
    if (!size_) return RefuseSizes();
    step_ = place_;
    return {};
  }

  Error RefuseSizes() const {
    return Refuse(place_, "images differ in size here",
                  "Move it after RandomResizedCrop, or after Resize and CenterCrop");
  }

  Status Resample() {
    if (resample_) {
      return Refuse(place_,
                    "a second resampling: " + Named(*resample_) +
                        " resamples already; resampling twice is slower and blurs",
                    "Let one transform resample to the final size");
    }
    if (step_) {
      return Refuse(*step_,
                    Named(place_) + " resamples after it, so that it would have to run on " +
                        "the whole photograph",
                    "Move it after the resampling");
    }
    resample_ = place_;
    crop_.reset();
    return {};
  }

  std::string Named(size_t place) const {
    return "transforms[" + std::to_string(place) + "], " + NameOf(transforms_[place]);
  }

  Error Refuse(size_t place, const std::string& cause, std::string advice) const {
    return {.code = Code::kInvalidArgument,
            .cause = Named(place) + ": " + cause,
            .advice = std::move(advice)};
  }

  const std::vector<Transform>& transforms_;
  const PlanOptions& options_;
  size_t place_ = 0;
  std::optional<ImageSize> size_;   // of the images before this transform, if they have one size
  std::optional<size_t> resample_;  // index of the resampling
  std::optional<size_t> crop_;      // index of the last crop since the start or resampling
  std::optional<size_t> step_;      // index of the last transform that cannot be fused
  std::optional<std::pair<Padding, Fill>> surrounded_;  // the last padding of the image
  std::optional<size_t> normalize_;
  std::optional<size_t> erasing_;
  std::vector<Place> places_;
};

}  // namespace

Result<Plan> Plan::Compile(std::vector<Transform> transforms, const PlanOptions& options) {
  if (!IsPixelType(options.dtype)) {
    return Error{.code = Code::kInvalidArgument,
                 .cause = std::string("images cannot be ") + NameOf(options.dtype),
                 .advice = "Use dtype uint8, float16, bfloat16 or float32"};
  }
  Compiler compiler(transforms, options);
  ASSIGN_OR_RETURN(ImageSize size, compiler.Run());
  Plan plan;
  plan.options_ = options;
  plan.output_ = size;
  plan.places_ = compiler.TakePlaces();
  Normalize normalize;
  if (const std::optional<size_t> place = compiler.normalize()) {
    normalize = std::get<Normalize>(transforms[*place]);
    plan.normalize_place_ = *place;
    plan.normalize_ = normalize;
  }
  for (size_t c = 0; c < 3; ++c) {
    plan.scale_[c] = static_cast<float>(1.0 / (255.0 * normalize.std[c]));
    plan.bias_[c] = normalize.mean[c] == 0 ? 0.0f : -normalize.mean[c] / normalize.std[c];
  }
  plan.transforms_ = std::move(transforms);
  return plan;
}

}  // namespace stoker
