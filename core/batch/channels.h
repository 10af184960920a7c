// Channels: what an image's channels become.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/result/result.h"

namespace stoker {

enum class Channels : uint16_t {
  kRgb,        // for gray images, too; without alpha
  kGray,       // the luma
  kRgba,       // alpha is the largest value where there is none
  kUnchanged,  // those of the file. kUnchanged + n is StoredChannels(n)
};

inline constexpr int kMostChannels = 64;  // of a TIFF

// The file's own channels: it must have `count` of them. Precondition: 1 to kMostChannels.
constexpr Channels StoredChannels(int count) {
  return static_cast<Channels>(static_cast<int>(Channels::kUnchanged) + count);
}

// Whether they are the file's own.
constexpr bool AreStored(Channels channels) { return channels >= Channels::kUnchanged; }

// Returns how many they are; 0 for kUnchanged.
constexpr int CountOf(Channels channels) {
  if (AreStored(channels))
    return static_cast<int>(channels) - static_cast<int>(Channels::kUnchanged);
  return channels == Channels::kGray ? 1 : channels == Channels::kRgb ? 3 : 4;
}

std::string NameOf(Channels channels);  // "rgb", "gray", "rgba", "unchanged", or their number

// Reads the name of channels that a batch can have, whose rows have one shape: InvalidArgument for
// "unchanged", too.
Result<Channels> ParseChannels(std::string_view name);

}  // namespace stoker
