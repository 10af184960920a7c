#include "transforms/whole/format.h"

namespace stoker::whole {
namespace {

const Format* Any(ImageFormat format) {
  switch (format) {
    case ImageFormat::kAvif:
      return &kAvif;
    case ImageFormat::kBmp:
      return &kBmp;
    case ImageFormat::kGif:
      return &kGif;
    case ImageFormat::kHeic:
      return &kHeic;
    case ImageFormat::kIco:
      return &kIco;
    case ImageFormat::kJpeg2000:
      return &kJp2;
    case ImageFormat::kPnm:
      return &kPnm;
    case ImageFormat::kTiff:
      return &kTiff;
    default:
      return nullptr;
  }
}

}  // namespace

const Format* FormatOf(ImageFormat format) {
  const Format* const any = Any(format);
  return any == nullptr || any->decode == nullptr ? nullptr : any;
}

Error Damaged(ImageFormat format, const std::string& cause, uint64_t offset) {
  return {.code = Code::kDataLoss,
          .cause = std::string("damaged ") + NameOf(format) + ": " + cause,
          .offset = offset,
          .advice = "Remove or re-create the image"};
}

Error Truncated(ImageFormat format, uint64_t offset) {
  return {.code = Code::kDataLoss,
          .cause = std::string("truncated ") + NameOf(format),
          .offset = offset,
          .advice = "Remove or re-create the image",
          .detail = Error::Detail::kTruncated};
}

Status CheckSame(ImageFormat format, const Header& first, const Header& again) {
  if (again.size.width == first.size.width && again.size.height == first.size.height &&
      again.channels == first.channels && again.extra == first.extra && again.bits == first.bits &&
      again.library_bytes <= first.library_bytes) {
    return {};
  }
  return Error{
      .code = Code::kDataLoss,
      .cause = "the bytes of " + WithArticle(format) + " changed after its header was read",
      .offset = 0,
      .advice = "Do not write to the image while it is decoded"};
}

std::string WithArticle(ImageFormat format) {
  const bool vowel = format == ImageFormat::kAvif || format == ImageFormat::kIco;
  return (vowel ? "an " : "a ") + std::string(NameOf(format));
}

Error Unsupported(ImageFormat format, const std::string& what, uint64_t offset) {
  return {.code = Code::kUnimplemented,
          .cause = WithArticle(format) + " with " + what + " is not decoded",
          .offset = offset,
          .advice = ConvertAdvice(format)};
}

}  // namespace stoker::whole
