// Channels: what an image's channels become.
#pragma once

#include <cstdint>

namespace stoker {

enum class Channels : uint8_t {
  kRgb,        // for gray images, too; without alpha
  kGray,       // the luma
  kRgba,       // alpha is the largest value where there is none
  kUnchanged,  // those of the file
};

constexpr const char* NameOf(Channels channels) {
  switch (channels) {
    case Channels::kRgb:
      return "rgb";
    case Channels::kGray:
      return "gray";
    case Channels::kRgba:
      return "rgba";
    case Channels::kUnchanged:
      return "unchanged";
  }
  return "?";
}

}  // namespace stoker
