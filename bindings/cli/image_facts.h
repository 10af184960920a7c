// Describes a photograph for the files that commands write.
#pragma once

#include <cstdint>
#include <span>

#include "io/source/source.h"
#include "transforms/decode/image_decoder.h"

namespace stoker {

// Describes a whole file by its header. Sizes are unknown if `decoder` does not open it.
ImageFacts FactsOfFile(std::span<const uint8_t> file, ImageDecoder& decoder);

}  // namespace stoker
