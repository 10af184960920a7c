#include "engine/arrays/encoded_input.h"

#include <cstring>
#include <utility>

#include "core/result/try.h"
#include "io/readers/plain_read.h"

namespace stoker {

Result<std::span<const uint8_t>> LoadInto(ReadRequest& file, const EncodedInput& input) {
  if (!input.path.empty()) {
    file.path = input.path;
    ReadPlainly(file);
    TRY(std::move(file.status));
    return std::span<const uint8_t>(file.buffer.data(), file.size);
  }
  TRY(MakeRoom(file.buffer, input.bytes.size()));
  if (!input.bytes.empty()) {
    std::memcpy(file.buffer.data(), input.bytes.data(), input.bytes.size());
  }
  return std::span<const uint8_t>(file.buffer.data(), input.bytes.size());
}

Error InFile(Error error, const EncodedInput& input) {
  if (input.path.empty() || !error.file.empty()) return error;
  return std::move(error).WithFile(input.path);
}

}  // namespace stoker
