#include "transforms/png/errors.h"

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

}  // namespace stoker::png
