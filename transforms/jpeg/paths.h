// Which way photographs were decoded: by our own decoder, or by libjpeg-turbo and why.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace stoker {

// Why an image is left to libjpeg-turbo.
enum class Fallback : uint8_t {
  kNone,         // it is not
  kHeader,       // a header out of the ordinary, or damaged
  kProcess,      // progressive, arithmetic, lossless, or more than 8 bits
  kColor,        // neither gray nor YCbCr
  kSampling,     // another chroma format than 4:4:4, 4:2:2, 4:2:0 and 4:4:0
  kScan,         // not all components in one scan
  kTables,       // Huffman tables that are missing, or not for 8-bit baseline
  kNarrow,       // chroma of one or two samples a row: upsampled by other rules
  kBits,         // damaged data: an invalid code, too long a block, too early an end
  kRestart,      // a restart marker missing
  kCoefficient,  // beyond eight times what 8-bit samples can give
};
inline constexpr size_t kFallbacks = static_cast<size_t>(Fallback::kCoefficient) + 1;

const char* NameOf(Fallback reason);  // "progressive or arithmetic", …

// Counts of images whose pixels were asked for.
struct DecodePaths {
  uint64_t fast = 0;
  std::array<uint64_t, kFallbacks> fallback{};  // by reason; that of kNone stays 0

  uint64_t no_end_marker = 0;  // of all: zeros stand in its place, and their data are whole

  // Of those that had a crop index: decoded by it, and why not. The latter were decoded without.
  uint64_t indexed = 0;       // these are in `fast` too
  uint64_t stale = 0;         // the file is another one than when the index was made
  uint64_t contradicted = 0;  // the index is damaged, or the file is not as it says

  DecodePaths& operator+=(const DecodePaths& other);
};

}  // namespace stoker
