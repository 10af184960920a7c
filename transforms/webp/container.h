// Parses the chunks of a WebP (RFC 9649): the position of its image and its orientation.
// Decompresses nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/batch/image.h"
#include "core/result/result.h"
#include "transforms/decode/orientation.h"

namespace stoker::webp {

struct Container {
  ImageSize size;         // both sides at least 1
  bool lossless = false;  // a chunk VP8L, else VP8
  bool alpha = false;     // the header announces alpha
  bool several_frames = false;
  size_t alpha_begin = 0;  // of the last chunk ALPH before the image, if `begin` is not the same
  size_t begin = 0;        // of the image's chunk, with its name and length; libwebp reads on after
                           // the end of the chunk and of the file if data seem to go on there
  Orientation orientation = Orientation::kNormal;
};

// `bytes`: the whole file; of an animation the first frame is the image. Errors have an offset:
// DataLoss for damaged and truncated files; Unimplemented for animations whose first frame does not
// fill the canvas. Allocates nothing.
Result<Container> ReadContainer(std::span<const uint8_t> bytes);

// Reads only the size, from a file's first bytes; for an animation, which is not an error here, the
// size of the canvas.
inline constexpr size_t kSizeBytes = 30;
Result<ImageSize> ReadSize(std::span<const uint8_t> first_bytes);

Error Damaged(const char* cause, uint64_t offset);  // "damaged WebP: …"
Error Truncated(uint64_t offset);

}  // namespace stoker::webp
