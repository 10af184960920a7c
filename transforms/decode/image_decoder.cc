#include "transforms/decode/image_decoder.h"

#include <optional>
#include <string>
#include <utility>

#include "transforms/whole/format.h"

namespace stoker {

ImageDecoder::ImageDecoder(const DecodeLimits& limits, MemoryBudget* budget)
    : jpeg_(limits, budget),
      png_(limits, budget),
      webp_(limits, budget),
      whole_(limits, budget),
      packed_(limits, budget),
      mask_(limits, budget),
      gray_(budget) {}

Result<ImageInfo> ImageDecoder::Open(std::span<const uint8_t> bytes, PixelMeaning meaning) {
  format_ = ImageFormat::kUnknown;
  if (bytes.empty()) {
    return Error{.code = Code::kDataLoss,
                 .cause = "the image has no bytes",
                 .offset = 0,
                 .advice = "Remove or re-create the image",
                 .detail = Error::Detail::kTruncated};
  }
  format_ = SniffFormat(bytes);
  const bool other =
      !IsPng(format_) && format_ != ImageFormat::kPackedMask && format_ != ImageFormat::kUnknown;
  if (IsMask(meaning) && other) {
    return NoMask(std::string("has the format ") + NameOf(format_), 0);
  }
  if (format_ == ImageFormat::kIco) {
    if (const auto png = whole::PngIn(bytes); !png.empty()) {
      format_ = ImageFormat::kPng;
      bytes = png;
      meaning = PixelMeaning::kColour;  // Pillow ignores its tRNS
    }
  }
  switch (format_) {
    case ImageFormat::kJpeg:
      return jpeg_.Open(bytes);
    case ImageFormat::kPng:
    case ImageFormat::kPackedPng:
      return Noted(png_.Open(bytes, meaning));
    case ImageFormat::kWebp:
      return Noted(webp_.Open(bytes));
    case ImageFormat::kPackedJpeg:
      return Noted(packed_.Open(bytes));
    case ImageFormat::kPackedMask:
      return Noted(mask_.Open(bytes, meaning));
    case ImageFormat::kUnknown:
      return NoImage(bytes);
    default:
      if (WholeDecoder::Decodes(format_)) return Noted(whole_.Open(bytes, format_));
      return Error{Code::kUnimplemented,
                   std::string(NameOf(format_)) + " images are not supported",
                   {},
                   0,
                   ConvertAdvice(format_)};
  }
}

Result<ImageInfo> ImageDecoder::Noted(Result<ImageInfo> info) {
  several_frames_ = info.ok() && info->several_frames;
  return info;
}

const packed::PackedFile* ImageDecoder::packed_file() const {
  return format_ == ImageFormat::kPackedJpeg ? &packed_.file() : nullptr;
}

std::optional<IndexedJpeg> ImageDecoder::indexed_jpeg(std::span<const uint8_t> crop_index) {
  return format_ == ImageFormat::kJpeg ? jpeg_.Indexed(crop_index) : std::nullopt;
}

Status ImageDecoder::Decode(const Rect& region, RowSink& sink, std::span<const uint8_t> crop_index,
                            Reduction reduction) {
  Start(region, sink, crop_index, reduction);
  while (decoding()) Advance();
  return Finish();
}

bool ImageDecoder::keeps_all() const {
  return IsPng(format_) || format_ == ImageFormat::kWebp || WholeDecoder::Decodes(format_);
}

Status ImageDecoder::DecodeUnchanged(const Rect& region, uint8_t* to) {
  if (!keeps_all()) {
    return Error{Code::kFailedPrecondition, "this format is not decoded unchanged"};
  }
  const bool webp = format_ == ImageFormat::kWebp;
  status_ = IsPng(format_) ? png_.DecodeUnchanged(region, to)
            : webp         ? webp_.DecodeUnchanged(region, to)
                           : whole_.DecodeUnchanged(region, to);
  return Finish();
}

void ImageDecoder::Start(const Rect& region, RowSink& sink, std::span<const uint8_t> crop_index,
                         Reduction reduction) {
  switch (format_) {
    case ImageFormat::kPng:
    case ImageFormat::kPackedPng:
      status_ = png_.Decode(region, gray_.Before(sink));
      return;
    case ImageFormat::kWebp:
      status_ = webp_.Decode(region, gray_.Before(sink));
      return;
    case ImageFormat::kPackedJpeg:
      status_ = packed_.Decode(region, sink, reduction);
      if (status_.ok()) ++packed_count_;
      return;
    case ImageFormat::kPackedMask:
      status_ = mask_.Decode(region, sink);
      return;
    case ImageFormat::kJpeg:
      jpeg_.Start(region, sink, crop_index, reduction);
      return;
    default:
      status_ =
          WholeDecoder::Decodes(format_)
              ? whole_.Decode(region, gray_.Before(sink))
              : Error{Code::kFailedPrecondition, "Decode was called without a successful Open"};
  }
}

bool ImageDecoder::decoding() const { return format_ == ImageFormat::kJpeg && jpeg_.decoding(); }

void ImageDecoder::Advance() { jpeg_.Advance(); }

void ImageDecoder::AdvanceBoth(ImageDecoder& a, ImageDecoder& b) {
  JpegDecoder::AdvanceBoth(a.jpeg_, b.jpeg_);
}

DecodePaths ImageDecoder::paths() const {
  DecodePaths paths = jpeg_.paths();
  paths.packed = packed_count_;
  paths.several_frames = several_frames_count_;
  return paths;
}

Status ImageDecoder::Finish() {
  if (format_ == ImageFormat::kJpeg) return jpeg_.Finish();
  several_frames_count_ += std::exchange(several_frames_, false) && status_.ok();
  return std::exchange(status_, Status());
}

}  // namespace stoker
