#include "transforms/jpeg/errors.h"

#include <cstdio>  // jpeglib.h needs FILE

#include <jpeglib.h>

#include <jerror.h>

#include <string>

namespace stoker {
namespace {

constexpr char kRecreate[] = "Remove or re-create the image";

Error Unsupported(const std::string& cause, uint64_t offset) {
  return Error{Code::kUnimplemented, cause, {}, offset, "Convert it to a baseline JPEG"};
}

}  // namespace

Error DamagedJpeg(const std::string& cause, uint64_t offset) {
  return Error{Code::kDataLoss, "damaged JPEG: " + cause, {}, offset, kRecreate};
}

Error TruncatedJpeg(uint64_t offset) {
  return Error{.code = Code::kDataLoss,
               .cause = "truncated JPEG: no end-of-image marker",
               .offset = offset,
               .advice = kRecreate,
               .detail = Error::Detail::kTruncated};
}

bool IsDamage(int message_code) {
  switch (message_code) {
    case JWRN_ARITH_BAD_CODE:
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_JPEG_EOF:
    case JWRN_MUST_RESYNC:
    case JWRN_TOO_MUCH_DATA:
      return true;
    default:
      return false;
  }
}

Error JpegError(int message_code, const char* text, uint64_t offset) {
  switch (message_code) {
    case JERR_INPUT_EMPTY:
    case JERR_INPUT_EOF:
    case JWRN_JPEG_EOF:
      return TruncatedJpeg(offset);
    case JWRN_ARITH_BAD_CODE:
      return DamagedJpeg("invalid arithmetic code", offset);
    case JWRN_HIT_MARKER:
      return DamagedJpeg("the compressed data of a scan ends too early", offset);
    case JWRN_HUFF_BAD_CODE:
      return DamagedJpeg("invalid Huffman code", offset);
    case JWRN_MUST_RESYNC:
      return DamagedJpeg("a restart marker is missing", offset);
    case JERR_NO_IMAGE:
    case JERR_SOS_NO_SOF:
      return DamagedJpeg("no image in it", offset);
    case JERR_EMPTY_IMAGE:
      return DamagedJpeg("its width or height is zero", offset);
    case JERR_OUT_OF_MEMORY:
      return Error{Code::kResourceExhausted, "no memory left to decode a JPEG", {}, offset};
    case JERR_BAD_PRECISION:
    case JERR_CCIR601_NOTIMPL:
    case JERR_COMPONENT_COUNT:
    case JERR_CONVERSION_NOTIMPL:
    case JERR_FRACT_SAMPLE_NOTIMPL:
    case JERR_SOF_UNSUPPORTED:
      return Unsupported("libjpeg-turbo cannot decode this kind of JPEG: " + std::string(text),
                         offset);
    default:
      return DamagedJpeg(text, offset);
  }
}

}  // namespace stoker
