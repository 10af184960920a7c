#include "transforms/processor/image_processor.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "core/result/try.h"
#include "transforms/decode/on_white.h"
#include "transforms/decode/push_region.h"
#include "transforms/plan/resampling.h"

namespace stoker {

namespace {

// Puts pixels of `channels` samples, gray or RGB and then alpha, onto white. `sample`: bytes of
// each; only the upper one counts. `rgb` may overlap `from` if RGB pixels are not longer.
void PutPixelsOnWhite(const uint8_t* from, int channels, int sample, size_t pixels, uint8_t* rgb) {
  const int upper = sample - 1, alpha = channels >= 4 ? 3 : 1;
  for (size_t i = 0; i < pixels; ++i, from += channels * sample, rgb += 3) {
    const uint32_t opacity = from[alpha * sample + upper];
    std::array<uint8_t, 3> on_white;
    for (int c = 0; c < 3; ++c) {
      on_white[static_cast<size_t>(c)] =
          OnWhite(from[(alpha == 3 ? c : 0) * sample + upper], opacity);
    }
    std::ranges::copy(on_white, rgb);
  }
}

}  // namespace

ImageProcessor::ImageProcessor(const ProcessorRecipe& recipe, const PatchValues& values,
                               const DecodeLimits& limits, bool exif_orientation,
                               MemoryBudget& budget)
    : recipe_(recipe),
      values_(values),
      limits_(limits),
      exif_orientation_(exif_orientation),
      decoder_(limits, &budget),
      sink_(budget),
      resampler_(budget),
      wide_(budget),
      canvas_(budget),
      pixels_(budget) {}

Result<ImageSize> ImageProcessor::Open(std::span<const uint8_t> bytes, ImageFlips flips) {
  const PixelMeaning meaning = recipe_.onto_white ? PixelMeaning::kOnWhite : PixelMeaning::kColour;
  Result<ImageInfo> opened = decoder_.Open(bytes, meaning);
  if (!opened.ok()) {
    Error error = std::move(opened).error();
    const bool only_onto_white = recipe_.onto_white && decoder_.Open(bytes).ok();
    if (only_onto_white) error.advice += ", or set do_convert_rgb to false";
    return error;
  }
  info_ = *opened;
  if (!exif_orientation_) info_.orientation = Orientation::kNormal;
  info_.orientation = Mirrored(info_.orientation, flips.columns, flips.rows);
  if (info_.bits > 8) TRY(CheckBits(info_, limits_));
  if (recipe_.onto_white) {
    Status kept =
        CheckKept(decoder_, info_, WideFormat(info_, Channels::kRgba, DType::kU8, limits_));
    if (!kept.ok()) {
      Error error = std::move(kept).error();
      error.advice = "Set do_convert_rgb to false, or convert the image";
      return error;
    }
  }
  kept_ = false;
  return Viewed(info_.size, info_.orientation);
}

Resampling ImageProcessor::TaskFor(const ResizedWindow& canvas) const {
  const ImageSize viewed = Viewed(info_.size, info_.orientation);
  return ResamplingOf({.box = {0, 0, viewed.width, viewed.height},
                       .resized = canvas.resized,
                       .window = canvas.window,
                       .interpolation = recipe_.interpolation,
                       .resampler = recipe_.resampler},
                      info_.size, info_.orientation);
}

Status ImageProcessor::Write(const ImagePlan& plan, uint8_t* rows) {
  if (plan.count > 1 || puts_onto_white()) TRY(KeepPixels());
  const size_t row_bytes = RowValues(recipe_, plan.patch) * SizeOf(values_.dtype);
  for (const ResizedWindow& canvas : plan.all()) {
    if (recipe_.resizes_floats) {
      TRY(DrawFloats(canvas, rows));
    } else {
      const ImageSize size = canvas.window.size();
      TRY(canvas_.Grow(3 * static_cast<size_t>(size.width) * static_cast<size_t>(size.height)));
      TRY(Draw(canvas, canvas_.data()));
      WritePatches(canvas_.data(), size, plan.patch, recipe_, values_, rows);
    }
    const auto [columns, lines] = plan.Grid(canvas);
    rows += static_cast<size_t>(columns) * static_cast<size_t>(lines) * row_bytes;
  }
  return {};
}

ImageView ImageProcessor::KeptImage() const {
  ImageView view;
  view.size = info_.size;
  view.plane[0] = pixels_.data();
  view.stride[0] = ptrdiff_t{3} * info_.size.width;
  return view;
}

// Decodes the whole image.
Status ImageProcessor::KeepPixels() {
  const size_t pixels =
      static_cast<size_t>(info_.size.width) * static_cast<size_t>(info_.size.height);
  const Rect all{0, 0, info_.size.width, info_.size.height};
  kept_ = true;
  if (!puts_onto_white()) {
    TRY(pixels_.Grow(3 * pixels));
    sink_.Start(all, /*gray=*/false, pixels_.data());
    return decoder_.Decode(all, sink_);
  }
  const int channels = (info_.components == 1 ? 1 : 3) + 1 + info_.extra, sample = info_.bits / 8;
  // Pixels shorter than RGB lie at the end, so that none is overwritten before it is read.
  const size_t stored = pixels * static_cast<size_t>(channels * sample);
  const size_t at = 3 * pixels > stored ? 3 * pixels - stored : 0;
  TRY(pixels_.Grow(at + stored));
  TRY(decoder_.DecodeUnchanged(all, pixels_.data() + at));
  PutPixelsOnWhite(pixels_.data() + at, channels, sample, pixels, pixels_.data());
  return {};
}

Status ImageProcessor::Draw(const ResizedWindow& canvas, uint8_t* to) {
  const Layout layout = recipe_.interleaved() ? Layout::kNhwc : Layout::kNchw;
  ASSIGN_OR_RETURN(const Rect region,
                   resampler_.Start(TaskFor(canvas), {.row = to, .layout = layout}));
  if (region.width == 0) return {};
  if (!kept_) return decoder_.Decode(region, resampler_);
  return PushRegion(PartOf(KeptImage(), region), region, resampler_);
}

// Resizes the image's values as float32, and writes the row itself: the canvas is the patch.
Status ImageProcessor::DrawFloats(const ResizedWindow& canvas, uint8_t* to) {
  std::array<float, 3> scale, bias;
  const Normalisation by = NormalisationOf(recipe_);
  for (size_t c = 0; c < 3; ++c) {
    scale[c] = 1 / by.deviation[c];
    bias[c] = -by.mean[c] / by.deviation[c];
  }
  const WideFormat format(info_, Channels::kRgb, DType::kU8, limits_);
  const PixelOutput output{.row = to,
                           .dtype = values_.dtype,
                           .scale = scale.data(),
                           .bias = bias.data(),
                           .layout = Layout::kNchw};
  if (kept_) return wide_.Decode(KeptImage(), format, TaskFor(canvas), output);
  return wide_.Decode(decoder_, info_, format, TaskFor(canvas), output);
}

}  // namespace stoker
