#include "transforms/png/errors.h"

#include <spng.h>

namespace stoker::png {
namespace {

constexpr char kRecreate[] = "Remove or re-create the image";

}  // namespace

Error Damaged(const std::string& cause, uint64_t offset) {
  return Error{Code::kDataLoss, "damaged PNG: " + cause, {}, offset, kRecreate};
}

Error Truncated(const std::string& cause, uint64_t offset) {
  return Error{.code = Code::kDataLoss,
               .cause = "truncated PNG: " + cause,
               .offset = offset,
               .advice = kRecreate,
               .detail = Error::Detail::kTruncated};
}

Error LibraryError(int code, uint64_t offset) {
  switch (code) {
    case SPNG_IO_EOF:
    case SPNG_EIDAT_TOO_SHORT:
      return Truncated("its compressed data end before its last row", offset);
    case SPNG_EIDAT_STREAM:
    case SPNG_EZLIB:
      return Damaged("invalid zlib data", offset);
    case SPNG_EFILTER:
      return Damaged("a row with an unknown filter", offset);
    case SPNG_EMEM:
    case SPNG_EZLIB_INIT:
      return Error{Code::kResourceExhausted, "no memory left to decode a PNG", {}, offset};
    default:
      return Damaged(spng_strerror(code), offset);
  }
}

}  // namespace stoker::png
