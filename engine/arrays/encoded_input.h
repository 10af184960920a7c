// EncodedInput: an image in memory or in a file, and its loading.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/result/result.h"

namespace stoker {

struct ReadRequest;

struct EncodedInput {
  std::span<const uint8_t> bytes;
  std::string path{};  // not empty: the file that has the bytes
};

// Copies or reads the bytes into `file.buffer`, because decoders read a little past them. Errors:
// those of reading, which name the file; ResourceExhausted if the buffer's budget has no room.
Result<std::span<const uint8_t>> LoadInto(ReadRequest& file, const EncodedInput& input);

// Adds the name of the file, if the image is in one, to an error that names none.
Error InFile(Error error, const EncodedInput& input);

}  // namespace stoker
