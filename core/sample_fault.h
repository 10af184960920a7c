// SampleFault: why a sample cannot be used, in the few classes that a user treats differently.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "core/result.h"

namespace stoker {

enum class SampleFault : uint8_t {
  kVanished,     // its file is not there any more
  kUnreadable,   // the system refuses to read it: permission, I/O; or it is no file
  kTruncated,    // bytes are missing at its end
  kUndecodable,  // its bytes are damaged, or no image
  kOverLimits,   // it takes more pixels, scans or memory than is allowed
  kUnsupported,  // a format, or a kind of one, that stoker does not decode
};
inline constexpr int kSampleFaults = 6;
using FaultCounts = std::array<uint64_t, kSampleFaults>;  // by SampleFault

// How many samples of a loader could not be used.
struct BadCounts {
  FaultCounts faults{};      // also those that failed
  uint64_t substituted = 0;  // rows that have another sample
  uint64_t dropped = 0;      // rows
};

// Returns the class of an error of reading or decoding a sample. nullopt: the sample may be good,
// because the machine has no memory or descriptors left, a server refuses all requests, or a call
// was wrong or cancelled.
std::optional<SampleFault> FaultOf(const Error& error);

// "vanished", "unreadable", "truncated", "undecodable", "over_limits", "unsupported".
const char* NameOf(SampleFault fault);

// Returns the name in the words of a sentence: "over limits".
std::string WordsOf(SampleFault fault);

// "2 truncated, 1 over limits": the classes that occurred.
std::string TextOf(const FaultCounts& counts);

}  // namespace stoker
