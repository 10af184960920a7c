// A photograph in other formats and kinds of JPEG.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace stoker::testing {

enum class PhotoForm : uint8_t {
  kJpeg,         // the file as it is
  kProgressive,  // the same coefficients
  kRestarts,     // the same coefficients, in one scan with restart markers
  kPng,
  kWebp,
  kLosslessWebp,
};
inline constexpr int kPhotoForms = 6;

// `jpeg`: a photograph that libjpeg-turbo decodes without a warning; ends the process for others.
std::vector<uint8_t> InForm(PhotoForm form, std::span<const uint8_t> jpeg);

}  // namespace stoker::testing
