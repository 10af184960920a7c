#include "transforms/png/reference_inflate.h"

#include <zlib.h>

#include <utility>

namespace stoker::png {

std::optional<std::vector<uint8_t>> InflateByZlib(std::span<const uint8_t> data, size_t total) {
  std::vector<uint8_t> bytes(total);
  z_stream stream{};
  stream.next_in = const_cast<Bytef*>(data.data());
  stream.avail_in = static_cast<uInt>(data.size());
  stream.next_out = bytes.data();
  stream.avail_out = static_cast<uInt>(total);
  if (inflateInit(&stream) != Z_OK) return std::nullopt;
  (void)inflateValidate(&stream, 0);
  int result = Z_OK;
  while (result == Z_OK && stream.avail_out > 0) result = inflate(&stream, Z_NO_FLUSH);
  const bool whole = stream.avail_out == 0 && result != Z_DATA_ERROR;
  (void)inflateEnd(&stream);
  return whole ? std::optional(std::move(bytes)) : std::nullopt;
}

}  // namespace stoker::png
