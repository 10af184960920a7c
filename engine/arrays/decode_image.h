// DecodeImage: decodes one image to an array, without a loader.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/result/result.h"
#include "transforms/array/array_request.h"
#include "transforms/decode/decoding.h"

namespace stoker {

// An array, 64-byte aligned. Its last owner frees the memory, on any thread.
struct DecodedArray {
  ArrayShape shape;
  std::shared_ptr<void> memory;
};

// Decodes an image, as Python's decode_image does: to the same bytes, with the same
// errors. Starts no thread, and may be called on any number of them.
//
// DataLoss: the bytes are not an image, or a damaged one, with the offset. InvalidArgument: a
// request that is not possible, or a region that is not inside the image. Unimplemented: another
// format; an image of 16 bits that is to have 8, unless the limits accept it; a transparent colour
// where alpha is wanted. ResourceExhausted: an image beyond the limits, or larger than memory.
Result<DecodedArray> DecodeImage(std::span<const uint8_t> bytes, const ArrayRequest& request = {},
                                 const DecodeLimits& limits = {});

// Does the same for the image in a file. Errors name it, including those of reading it.
Result<DecodedArray> DecodeImageFile(const std::string& path, const ArrayRequest& request = {},
                                     const DecodeLimits& limits = {});

}  // namespace stoker
