#include "engine/arrays/decode_image.h"

#include "core/result/try.h"
#include "core/system/machine.h"
#include "engine/arrays/decoder_pool.h"
#include "transforms/array/array_decoder.h"

namespace stoker {

namespace {

Result<DecodedArray> Decode(const EncodedInput& input, const ArrayRequest& request,
                            const DecodeLimits& limits) {
  TRY(CheckRequest(request, limits));
  return DecoderPool(limits, DefaultMemory()).Decode(input, request);
}

}  // namespace

Result<DecodedArray> DecodeImage(std::span<const uint8_t> bytes, const ArrayRequest& request,
                                 const DecodeLimits& limits) {
  return Decode({.bytes = bytes}, request, limits);
}

Result<DecodedArray> DecodeImageFile(const std::string& path, const ArrayRequest& request,
                                     const DecodeLimits& limits) {
  if (path.empty()) return Error{Code::kInvalidArgument, "the path is empty"};
  return Decode({.bytes = {}, .path = path}, request, limits);
}

}  // namespace stoker
