// Describes a photograph for the files that keep sizes, by its header.
#pragma once

#include <cstdint>
#include <span>

#include "io/source/source.h"
#include "transforms/decode/image_decoder.h"

namespace stoker {

// Describes an image that was opened. `bytes`: all of it; of its beginning alone, the result has
// another file_bytes.
ImageFacts FactsOf(const ImageInfo& info, std::span<const uint8_t> bytes);

// Describes a whole file. Sizes are unknown if `decoder` does not open it.
ImageFacts FactsOfFile(std::span<const uint8_t> file, ImageDecoder& decoder);

}  // namespace stoker
