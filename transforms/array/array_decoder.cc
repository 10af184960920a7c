#include "transforms/array/array_decoder.h"

#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "core/result/try.h"
#include "transforms/decode/push_region.h"
#include "transforms/plan/draw.h"
#include "transforms/plan/resampling.h"
#include "transforms/spec/transform_table.h"

namespace stoker {

namespace {

constexpr std::array<float, 3> kTo1 = {1.0F / 255, 1.0F / 255, 1.0F / 255}, kNoBias = {};

Error NotInside(const Rect& region, ImageSize image) {
  return {.code = Code::kInvalidArgument,
          .cause = "the region (top " + std::to_string(region.y) + ", left " +
                   std::to_string(region.x) + ", height " + std::to_string(region.height) +
                   ", width " + std::to_string(region.width) +
                   ") is not inside the image, which has height " + std::to_string(image.height) +
                   " and width " + std::to_string(image.width)};
}

// Returns the size of the resized region. Resizing by the shorter side makes a thin image very
// long.
Result<ImageSize> Resized(const Resize& resize, ImageSize region, const WideFormat& format,
                          const DecodeLimits& limits) {
  const ImageSize size = SizeAfter(resize, region);
  const int pixel = format.count * format.bits / 8;
  if (Status checked = CheckSize(size, limits, 0, pixel); !checked.ok()) {
    return Error{.code = Code::kResourceExhausted,
                 .cause = "the resized image would be " + checked.error().cause,
                 .advice = "Give a smaller size, or height and width"};
  }
  return size;
}

bool IsNormal(const Turn& turn) {
  return !turn.transpose && !turn.mirror_columns && !turn.mirror_rows;
}

}  // namespace

Status CheckRequest(const ArrayRequest& request, const DecodeLimits& limits) {
  TRY(CheckPixelType(request.dtype));
  if (request.channels == Channels::kUnchanged &&
      (request.dtype != DType::kU8 || request.layout != Layout::kNhwc)) {
    return Error{Code::kInvalidArgument,
                 "unchanged images have their own type, and the layout NHWC"};
  }
  if (limits.max_pixels < 1 || limits.max_scans < 1) {
    return Error{Code::kInvalidArgument, "max_pixels and max_scans must be at least 1"};
  }
  if (!request.resize) return {};
  std::optional<Refusal> refusal = CheckTransform(*request.resize, request.dtype);
  if (!refusal) return {};
  return Error{.code = Code::kInvalidArgument,
               .cause = "resize: " + refusal->cause,
               .advice = std::move(refusal->advice)};
}

ArrayDecoder::ArrayDecoder(const DecodeLimits& limits, MemoryBudget& budget)
    : limits_(limits),
      decoder_(limits, &budget),
      sink_(budget),
      resampler_(budget),
      gray_rows_(&budget),
      wide_(budget) {}

Result<ArrayShape> ArrayDecoder::Open(std::span<const uint8_t> bytes, const ArrayRequest& request) {
  pixels_.reset();
  ASSIGN_OR_RETURN(ImageInfo info, decoder_.Open(bytes));
  if (!request.exif_orientation) info.orientation = Orientation::kNormal;
  return Prepare(info, request);
}

Result<ArrayShape> ArrayDecoder::Open(const ImageView& image, const ArrayRequest& request) {
  TRY(CheckSides(image.size));
  pixels_ = image;
  ASSIGN_OR_RETURN(
      ArrayShape shape,
      Prepare({.size = image.size, .components = image.layout == PixelLayout::kGray ? 1 : 3},
              request));
  if (image.layout == PixelLayout::kPlanar) resampled_ = true;  // the sink takes no planes
  return shape;
}

Result<ArrayShape> ArrayDecoder::Prepare(const ImageInfo& info, const ArrayRequest& request) {
  const ImageSize viewed = Viewed(info.size, info.orientation);
  const Rect box = request.region.value_or(Rect{0, 0, viewed.width, viewed.height});
  if (!Inside(box, viewed)) return NotInside(box, viewed);
  request_ = request;
  if (request.channels == Channels::kUnchanged && !info.alpha && info.bits == 8 &&
      info.extra == 0) {
    request_.channels = info.components == 1 ? Channels::kGray : Channels::kRgb;
  }
  info_ = info;
  format_.emplace(info, request_.channels, request.dtype, limits_);
  TRY(CheckCount(*format_));
  if (format_->bits < info.bits) TRY(CheckBits(info, limits_));
  if (!pixels_) TRY(CheckKept(decoder_, info, *format_));
  Geometry geometry{.box = box, .resized = box.size(), .window = {}};
  if (request.resize) {
    ASSIGN_OR_RETURN(geometry.resized, Resized(*request.resize, box.size(), *format_, limits_));
    geometry.antialias = request.resize->antialias;
    geometry.interpolation = request.resize->interpolation;
    geometry.resampler = request.resize->resampler;
    if (format_->is_wide && geometry.resampler != ResampledAs::kPillow) {
      return Error{.code = Code::kInvalidArgument,
                   .cause = std::string("resize: resampler = ") + NameOf(geometry.resampler) +
                            " for pixels of 16 bits or with alpha, which are resampled in floats",
                   .advice = "Leave resampler out, or ask for uint8 and \"rgb\" or \"gray\""};
    }
  }
  geometry.window = {0, 0, geometry.resized.width, geometry.resized.height};
  task_ = ResamplingOf(geometry, info.size, info.orientation);
  const bool as_stored = (request.dtype == DType::kU8 || request.dtype == DType::kU16) &&
                         (format_->count == 1 || request.layout == Layout::kNhwc);
  resampled_ = !as_stored || geometry.resized != box.size() || !IsNormal(task_.turn);
  return ShapeOf(geometry.resized);
}

ArrayShape ArrayDecoder::ShapeOf(ImageSize size) const {
  const bool unchanged = request_.channels == Channels::kUnchanged;
  ArrayShape shape{unchanged && format_->bits == 16 ? DType::kU16 : request_.dtype,
                   {size.height, size.width}};
  if (format_->count == 1) return shape;
  const bool first = request_.layout == Layout::kNchw;
  shape.sides.insert(first ? shape.sides.begin() : shape.sides.end(), format_->count);
  return shape;
}

Status ArrayDecoder::Decode(void* array) {
  Start(array);
  while (decoding()) Advance();
  return Finish();
}

void ArrayDecoder::Start(void* array) {
  status_ = {};
  started_ = false;
  if (!pixels_ && format_->is_stored && decoder_.keeps_all() && !resampled_) {
    status_ = decoder_.DecodeUnchanged(task_.box, static_cast<uint8_t*>(array));
    return;
  }
  if (format_->is_wide) {
    status_ = DecodeWide(array);
    return;
  }
  Rect region = task_.box;
  RowSink* sink = &sink_;
  if (resampled_) {
    Result<Rect> wanted = resampler_.Start(task_, OutputTo(array));
    if (!wanted.ok()) {
      status_ = std::move(wanted).error();
      return;
    }
    region = *wanted;
    sink = &resampler_;
  } else {
    sink_.Start(region, format_->count == 1, static_cast<uint8_t*>(array));
  }
  if (pixels_) {
    status_ = PushRegion(PartOf(*pixels_, region), region, gray_rows_.Before(*sink));
  } else {
    decoder_.Start(region, *sink);
    started_ = true;
  }
}

PixelOutput ArrayDecoder::OutputTo(void* array) const {
  const bool gray = format_->count == 1;
  return {.row = array,
          .dtype = ShapeOf({}).dtype,
          .scale = format_->is_wide ? nullptr : kTo1.data(),
          .bias = kNoBias.data(),
          .layout = request_.layout,
          .gray = gray,
          .channels = gray ? 1 : 3};
}

Status ArrayDecoder::DecodeWide(void* array) {
  if (pixels_) return wide_.Decode(*pixels_, *format_, task_, OutputTo(array));
  return wide_.Decode(decoder_, info_, *format_, task_, OutputTo(array));
}

Status ArrayDecoder::Finish() {
  Status status = std::exchange(status_, Status());
  if (started_) status = decoder_.Finish();
  return status;
}

}  // namespace stoker
