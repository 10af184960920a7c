// Converts CMYK pixels of a JPEG to RGB.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stoker {

// Converts like Pillow's convert("RGB"): the stored values are taken as inverted, which is Adobe's
// convention and Pillow's assumption for all files; R = K − (255 − C)·K/255, the product rounded,
// and so on. `rgb` may be `cmyk`.
void ConvertInvertedCmyk(const uint8_t* cmyk, size_t pixels, uint8_t* rgb);

}  // namespace stoker
