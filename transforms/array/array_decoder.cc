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
Result<ImageSize> Resized(const Resize& resize, ImageSize region, const DecodeLimits& limits) {
  const ImageSize size = SizeAfter(resize, region);
  if (Status checked = CheckSize(size, limits, 0); !checked.ok()) {
    return Error{.code = Code::kResourceExhausted,
                 .cause = "the resized image would be " + checked.error().cause,
                 .advice = "Give a smaller size, or height and width"};
  }
  return size;
}

std::vector<int64_t> SidesOf(ImageSize size, const ArrayRequest& request) {
  if (request.mode == ArrayMode::kGray) return {size.height, size.width};
  if (request.layout == Layout::kNchw) return {3, size.height, size.width};
  return {size.height, size.width, 3};
}

bool IsNormal(const Turn& turn) {
  return !turn.transpose && !turn.mirror_columns && !turn.mirror_rows;
}

// Turns stored pixels of any kind, in rows without gaps.
void TurnPixels(const uint8_t* from, ImageSize stored, const Turn& turn, size_t pixel,
                uint8_t* to) {
  const ImageSize viewed = turn.transpose ? ImageSize{stored.height, stored.width} : stored;
  for (int y = 0; y < viewed.height; ++y) {
    for (int x = 0; x < viewed.width; ++x, to += pixel) {
      int column = turn.mirror_columns ? viewed.width - 1 - x : x;
      int row = turn.mirror_rows ? viewed.height - 1 - y : y;
      if (turn.transpose) std::swap(column, row);
      const size_t at = static_cast<size_t>(row) * static_cast<size_t>(stored.width) +
                        static_cast<size_t>(column);
      std::memcpy(to, from + at * pixel, pixel);
    }
  }
}

}  // namespace

Status CheckRequest(const ArrayRequest& request, const DecodeLimits& limits) {
  TRY(CheckPixelType(request.dtype));
  if (request.mode != ArrayMode::kRgb &&
      (request.dtype != DType::kU8 || request.layout != Layout::kNhwc)) {
    return Error{Code::kInvalidArgument,
                 "only arrays of RGB have another type than uint8, or another layout than NHWC"};
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
      between_(budget) {}

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
  Geometry geometry{.box = box, .resized = box.size(), .window = {}};
  if (request.resize) {
    ASSIGN_OR_RETURN(geometry.resized, Resized(*request.resize, box.size(), limits_));
    geometry.antialias = request.resize->antialias;
    geometry.interpolation = request.resize->interpolation;
  }
  geometry.window = {0, 0, geometry.resized.width, geometry.resized.height};
  request_ = request;
  task_ = ResamplingOf(geometry, info.size, info.orientation);
  sample_bytes_ = 0;
  if (request.mode == ArrayMode::kUnchanged) {
    if (info.alpha || info.bits != 8) return PrepareSamples(info);
    request_.mode = info.components == 1 ? ArrayMode::kGray : ArrayMode::kRgb;
  }
  TRY(CheckBits(info, limits_));
  const bool as_stored = request.dtype == DType::kU8 && request.layout == Layout::kNhwc;
  resampled_ = !as_stored || geometry.resized != box.size() || !IsNormal(task_.turn);
  return ArrayShape{request.dtype, SidesOf(geometry.resized, request_)};
}

// For an image with alpha, or of 16 bits.
Result<ArrayShape> ArrayDecoder::PrepareSamples(const ImageInfo& info) {
  const bool webp = info.format == ImageFormat::kWebp;
  if (webp || task_.resized != task_.box.size()) {
    return Error{.code = Code::kUnimplemented,
                 .cause = webp ? "the alpha of a WebP is not decoded"
                               : "an image with alpha, or of 16 bits, is not resized unchanged",
                 .advice = info.bits == 8
                               ? "Use mode \"rgb\" or \"gray\""
                               : "Resize the array that mode \"unchanged\" gives, or use "
                                 "mode \"rgb\" or \"gray\" with accept_16_bits"};
  }
  const int64_t channels = (info.components == 1 ? 1 : 3) + (info.alpha ? 1 : 0);
  const DType dtype = info.bits == 16 ? DType::kU16 : DType::kU8;
  sample_bytes_ = static_cast<size_t>(channels) * SizeOf(dtype);
  const ImageSize size = Viewed(task_.box.size(), info.orientation);
  std::vector<int64_t> sides = {size.height, size.width, channels};
  if (channels == 1) sides.pop_back();
  return ArrayShape{dtype, std::move(sides)};
}

Status ArrayDecoder::Decode(void* array) {
  Start(array);
  while (decoding()) Advance();
  return Finish();
}

void ArrayDecoder::Start(void* array) {
  status_ = {};
  gray_ = nullptr;
  started_ = false;
  if (sample_bytes_ != 0) {
    status_ = DecodeSamples(static_cast<uint8_t*>(array));
    return;
  }
  Rect region = task_.box;
  RowSink* sink = &sink_;
  if (resampled_) {
    Result<Rect> wanted = StartResampling(array);
    if (!wanted.ok()) {
      status_ = std::move(wanted).error();
      return;
    }
    region = *wanted;
    sink = &resampler_;
  } else {
    sink_.Start(region, gray(), static_cast<uint8_t*>(array));
  }
  if (pixels_) {
    status_ = PushRegion(PartOf(*pixels_, region), region, *sink);
  } else {
    decoder_.Start(region, *sink);
    started_ = true;
  }
}

Result<Rect> ArrayDecoder::StartResampling(void* array) {
  PixelOutput output{.row = array,
                     .dtype = request_.dtype,
                     .scale = kTo1.data(),
                     .bias = kNoBias.data(),
                     .layout = request_.layout};
  if (gray()) {
    TRY(between_.Grow(3 * Pixels()));
    output.row = between_.data();
    gray_ = static_cast<uint8_t*>(array);
  }
  return resampler_.Start(task_, output);
}

Status ArrayDecoder::DecodeSamples(uint8_t* array) {
  const Rect& region = task_.box;
  if (IsNormal(task_.turn)) return decoder_.DecodeUnchanged(region, array);
  TRY(between_.Grow(Pixels() * sample_bytes_));
  TRY(decoder_.DecodeUnchanged(region, between_.data()));
  TurnPixels(between_.data(), region.size(), task_.turn, sample_bytes_, array);
  return {};
}

Status ArrayDecoder::Finish() {
  Status status = std::exchange(status_, Status());
  if (started_) status = decoder_.Finish();
  if (status.ok() && gray_ != nullptr) ToGray(between_.data(), Pixels(), gray_);
  return status;
}

size_t ArrayDecoder::Pixels() const {
  const ImageSize size = task_.window.size();  // as stored
  return static_cast<size_t>(size.width) * static_cast<size_t>(size.height);
}

}  // namespace stoker
