// The chunks of a WebP (RFC 9649): where its image is, and how it is to be turned. Nothing is
// decompressed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/image.h"
#include "core/result.h"
#include "transforms/decode/orientation.h"

namespace stoker::webp {

struct Container {
  ImageSize size;         // both sides at least 1
  bool lossless = false;  // a chunk VP8L, else VP8
  size_t begin = 0;       // of that chunk, its name and length included; libwebp reads on
                          // behind its end, and behind the file's own, where data seem to go on
  Orientation orientation = Orientation::kNormal;
};

// `bytes`: the whole file. Errors have an offset: DataLoss for damage, and for a file that is
// truncated; Unimplemented for animations. Allocates nothing.
Result<Container> ReadContainer(std::span<const uint8_t> bytes);

// The size alone, of a file's first bytes; that of the canvas for an animation, which is no error.
inline constexpr size_t kSizeBytes = 30;
Result<ImageSize> ReadSize(std::span<const uint8_t> first_bytes);

Error Damaged(const char* cause, uint64_t offset);  // "damaged WebP: …"
Error Truncated(uint64_t offset);

}  // namespace stoker::webp
