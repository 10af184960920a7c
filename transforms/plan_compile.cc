// Plan::Compile: what a list of transforms may be, and what to say when it is not that.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>

#include "transforms/draw.h"
#include "transforms/plan.h"
#include "transforms/resize/row_format.h"

namespace stoker {

namespace {

std::string Text(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%g", value);
  return text;
}

std::string Text(int width, int height) {
  return std::to_string(width) + " × " + std::to_string(height);
}

// Walks through the list and knows what the images are like at each place.
class Compiler {
 public:
  Compiler(const std::vector<Transform>& transforms, const PlanOptions& options)
      : transforms_(transforms), options_(options) {}

  // The size of the output.
  Result<ImageSize> Run() {
    for (place_ = 0; place_ < transforms_.size(); ++place_) {
      if (normalize_) return Refuse(*normalize_, NormalizeNotLast(), "Move it to the end");
      Status status = std::visit([this](const auto& t) { return Check(t); }, transforms_[place_]);
      if (!status) return std::move(status).error();
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

 private:
  Status Check(const Resize& t) {
    if (t.size != 0) {
      if (Status s = CheckSide("size", t.size); !s) return s;
      if (t.height != 0 || t.width != 0) {
        return Refuse(place_,
                      "size = " + std::to_string(t.size) + " together with height = " +
                          std::to_string(t.height) + ", width = " + std::to_string(t.width),
                      "Give size (of the shorter side), or height and width");
      }
      if (size_) {  // cropped before, so all images have the same shape
        size_ = ShorterSideTo(t.size, *size_);
        if (std::max(size_->width, size_->height) > kMostSidePixels) {
          return Refuse(place_,
                        "size = " + std::to_string(t.size) + " makes images of " +
                            Text(size_->width, size_->height) + " pixels",
                        "Give a smaller size");
        }
      }
      return Resample();
    }
    if (Status s = CheckSize(t.height, t.width); !s) return s;
    size_ = ImageSize{t.width, t.height};
    return Resample();
  }

  Status Check(const CenterCrop& t) {
    if (Status s = CheckSize(t.height, t.width); !s) return s;
    if (crop_ && (t.width > size_->width || t.height > size_->height)) {
      return Refuse(place_,
                    Text(t.width, t.height) + " is larger than the " +
                        Text(size_->width, size_->height) + " that " + Named(*crop_) +
                        " leaves: it would only add a black border",
                    "Remove one of the two crops");
    }
    crop_ = place_;
    size_ = ImageSize{t.width, t.height};
    return {};
  }

  Status Check(const RandomResizedCrop& t) {
    if (Status s = CheckSize(t.height, t.width); !s) return s;
    if (Status s = CheckRange("scale", t.scale, 0, 1e6); !s) return s;
    if (Status s = CheckRange("ratio", t.ratio, 1.0 / kMostSidePixels, kMostSidePixels); !s)
      return s;
    size_ = ImageSize{t.width, t.height};
    return Resample();
  }

  Status Check(const RandomHorizontalFlip& t) {
    if (!(t.p >= 0 && t.p <= 1)) {
      return Refuse(place_, "p = " + Text(t.p) + " is no probability", "Give p between 0 and 1");
    }
    return {};
  }

  Status Check(const Normalize& t) {
    if (options_.dtype == DType::kU8) {
      return Refuse(place_, std::string("its values do not fit ") + NameOf(options_.dtype),
                    "Ask for dtype float32, float16 or bfloat16, or normalise on the device");
    }
    for (size_t c = 0; c < 3; ++c) {
      const std::string channel = std::string("[") + std::to_string(c) + "] = ";
      if (!std::isfinite(t.mean[c])) {
        return Refuse(place_, "mean" + channel + Text(t.mean[c]), "Give a finite mean");
      }
      if (!std::isnormal(t.std[c]) || t.std[c] < 0 || !std::isfinite(t.mean[c] / t.std[c]) ||
          !std::isfinite(1 / t.std[c])) {
        return Refuse(place_, "std" + channel + Text(t.std[c]), "Give a positive std");
      }
    }
    normalize_ = place_;
    return {};
  }

  Status Resample() {
    if (resample_) {
      return Refuse(place_,
                    "a second resampling: " + Named(*resample_) +
                        " resamples already, and twice is slower and blurs",
                    "Let one transform go straight to the final size");
    }
    resample_ = place_;
    crop_.reset();
    return {};
  }

  Status CheckSide(const char* option, int value) const {
    if (value >= 1 && value <= kMostSidePixels) return {};
    return Refuse(place_, std::string(option) + " = " + std::to_string(value),
                  std::string("Give ") + option + " between 1 and " +
                      std::to_string(kMostSidePixels) + " pixels");
  }

  Status CheckSize(int height, int width) const {
    if (Status s = CheckSide("height", height); !s) return s;
    return CheckSide("width", width);
  }

  Status CheckRange(const char* option, const std::array<double, 2>& range, double low,
                    double high) const {
    if (range[0] >= low && range[0] <= range[1] && range[1] > 0 && range[1] <= high) return {};
    return Refuse(place_,
                  std::string(option) + " = (" + Text(range[0]) + ", " + Text(range[1]) + ")",
                  std::string("Give ") + option + " as (smallest, largest), both between " +
                      Text(low) + " and " + Text(high));
  }

  std::string NormalizeNotLast() const { return Named(place_) + " comes after it"; }

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
  std::optional<ImageSize> size_;   // of the images at this place, where they have one
  std::optional<size_t> resample_;  // place of the resampling
  std::optional<size_t> crop_;      // place of the last CenterCrop since the start or resampling
  std::optional<size_t> normalize_;
};

}  // namespace

Result<Plan> Plan::Compile(std::vector<Transform> transforms, const PlanOptions& options) {
  if (!IsPixelType(options.dtype)) {
    return Error{.code = Code::kInvalidArgument,
                 .cause = std::string("images cannot be ") + NameOf(options.dtype),
                 .advice = "Ask for dtype uint8, float16, bfloat16 or float32"};
  }
  Result<ImageSize> size = Compiler(transforms, options).Run();
  if (!size) return std::move(size).error();
  Plan plan;
  plan.options_ = options;
  plan.output_ = *size;
  Normalize normalize;
  if (const auto* last = std::get_if<Normalize>(&transforms.back())) normalize = *last;
  for (size_t c = 0; c < 3; ++c) {
    plan.scale_[c] = static_cast<float>(1.0 / (255.0 * normalize.std[c]));
    plan.bias_[c] = normalize.mean[c] == 0 ? 0.0f : -normalize.mean[c] / normalize.std[c];
  }
  plan.transforms_ = std::move(transforms);
  return plan;
}

}  // namespace stoker
