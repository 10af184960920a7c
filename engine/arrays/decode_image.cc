#include "engine/arrays/decode_image.h"

#include <optional>
#include <utility>

#include "core/machine.h"
#include "core/try.h"
#include "engine/arrays/decoder_pool.h"
#include "transforms/spec/transform_table.h"

namespace stoker {

namespace {

Error Refused(std::string cause) {
  return {.code = Code::kInvalidArgument, .cause = std::move(cause)};
}

// Checks what Python's arguments cannot be.
Status Check(const ArrayRequest& request, const DecodeLimits& limits) {
  const bool is_float =
      request.dtype == DType::kF16 || request.dtype == DType::kBF16 || request.dtype == DType::kF32;
  if (!is_float && request.dtype != DType::kU8) {
    return Refused(std::string("dtype is ") + NameOf(request.dtype) +
                   "; it must be uint8, float16, bfloat16 or float32");
  }
  if (request.mode != ArrayMode::kRgb && (is_float || request.layout != Layout::kNhwc)) {
    return Refused("only arrays of RGB have another type than uint8, or another layout than NHWC");
  }
  if (limits.max_pixels < 1 || limits.max_scans < 1) {
    return Refused("max_pixels and max_scans must be at least 1");
  }
  if (!request.resize) return {};
  const std::optional<Refusal> refusal = CheckTransform(*request.resize, request.dtype);
  if (!refusal) return {};
  Error error = Refused("resize: " + refusal->cause);
  error.advice = refusal->advice;
  return error;
}

Result<DecodedArray> Decode(const EncodedInput& input, const ArrayRequest& request,
                            const DecodeLimits& limits) {
  TRY(Check(request, limits));
  return DecoderPool(limits, DefaultMemory()).Decode(input, request);
}

}  // namespace

Result<DecodedArray> DecodeImage(std::span<const uint8_t> bytes, const ArrayRequest& request,
                                 const DecodeLimits& limits) {
  return Decode({.bytes = bytes}, request, limits);
}

Result<DecodedArray> DecodeImageFile(const std::string& path, const ArrayRequest& request,
                                     const DecodeLimits& limits) {
  if (path.empty()) return Refused("the path is empty");
  return Decode({.bytes = {}, .path = path}, request, limits);
}

}  // namespace stoker
