#include "transforms/whole/format.h"

namespace stoker::whole {
namespace {

const Format* Any(ImageFormat format) {
  switch (format) {
    case ImageFormat::kBmp:
      return &kBmp;
    case ImageFormat::kGif:
      return &kGif;
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

Error Unsupported(ImageFormat format, const std::string& what, uint64_t offset) {
  return {.code = Code::kUnimplemented,
          .cause = std::string("a ") + NameOf(format) + " with " + what + " is not decoded",
          .offset = offset,
          .advice = ConvertAdvice(format)};
}

}  // namespace stoker::whole
