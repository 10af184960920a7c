// The parts of an image file: segments of a JPEG, chunks of a PNG or a WebP.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace stoker::testing {

// A range of a file's bytes.
struct ByteSpan {
  size_t at = 0, size = 0;
};

// All of these lie in the file. Of a JPEG's scan, `data` are its header's parameters, and `whole`
// has its coded data, too. Of a PNG's chunk, `whole` has the checksum.
struct ImagePart {
  ByteSpan whole{};
  ByteSpan name{};    // a marker's second byte, or four characters
  ByteSpan length{};  // the bytes that say how long it is; none means a marker alone
  ByteSpan data{};
};

// The parts, in order, up to the first that is not whole. None: the bytes are no JPEG, PNG or WebP.
std::vector<ImagePart> PartsOf(std::span<const uint8_t> file);

}  // namespace stoker::testing
