// SampleFault: why a sample cannot be used, in the classes that users treat differently.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "core/result/result.h"

namespace stoker {

enum class SampleFault : uint8_t {
  kVanished,     // its file no longer exists
  kUnreadable,   // the system refuses to read it (permission, I/O), or it is not a file
  kTruncated,    // bytes are missing at its end
  kUndecodable,  // its bytes are damaged, are not an image, or have another size than annotated
  kOverLimits,   // it takes more pixels, scans or memory than is allowed
  kUnsupported,  // its format, or a variant of one, is not decoded by stoker
  kForbidden,    // a server refuses it, or hides that it does not exist
};
inline constexpr int kSampleFaults = 7;
using FaultCounts = std::array<uint64_t, kSampleFaults>;  // by SampleFault

// The number of a loader's samples that could not be used.
struct BadCounts {
  FaultCounts faults{};      // including those that failed
  uint64_t substituted = 0;  // rows in which another sample replaced it
  uint64_t dropped = 0;      // rows
};

// Returns the class of an error of reading or decoding a sample. Returns nullopt if the sample may
// be good: the machine has no memory or descriptors left, a server refuses credentials, or a call
// was wrong or cancelled.
std::optional<SampleFault> FaultOf(const Error& error);

// "vanished", "unreadable", "truncated", "undecodable", "over_limits", "unsupported", "forbidden".
const char* NameOf(SampleFault fault);

// Returns the name as it appears in a sentence: "over limits".
std::string WordsOf(SampleFault fault);

// "2 truncated, 1 over limits": the classes that occurred.
std::string TextOf(const FaultCounts& counts);

}  // namespace stoker
