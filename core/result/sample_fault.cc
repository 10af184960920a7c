#include "core/result/sample_fault.h"

#include <algorithm>

namespace stoker {

std::optional<SampleFault> FaultOf(const Error& error) {
  if (error.detail == Error::Detail::kOfNoSample) return std::nullopt;
  switch (error.code) {
    case Code::kNotFound:
      return SampleFault::kVanished;
    case Code::kPermissionDenied:
      return error.detail == Error::Detail::kForbidden ? SampleFault::kForbidden
                                                       : SampleFault::kUnreadable;
    case Code::kInvalidArgument:  // a folder, a loop of links
    case Code::kUnavailable:
      return SampleFault::kUnreadable;
    case Code::kDataLoss:
      return error.detail == Error::Detail::kTruncated ? SampleFault::kTruncated
                                                       : SampleFault::kUndecodable;
    case Code::kResourceExhausted:
      if (error.detail == Error::Detail::kOverLimits) return SampleFault::kOverLimits;
      return std::nullopt;
    case Code::kUnimplemented:
      return SampleFault::kUnsupported;
    case Code::kFailedPrecondition:
    case Code::kCancelled:
      return std::nullopt;
  }
  return std::nullopt;
}

const char* NameOf(SampleFault fault) {
  switch (fault) {
    case SampleFault::kVanished:
      return "vanished";
    case SampleFault::kUnreadable:
      return "unreadable";
    case SampleFault::kTruncated:
      return "truncated";
    case SampleFault::kUndecodable:
      return "undecodable";
    case SampleFault::kOverLimits:
      return "over_limits";
    case SampleFault::kUnsupported:
      return "unsupported";
    case SampleFault::kForbidden:
      return "forbidden";
  }
  return "";
}

std::string WordsOf(SampleFault fault) {
  std::string words = NameOf(fault);
  std::ranges::replace(words, '_', ' ');
  return words;
}

std::string TextOf(const FaultCounts& counts) {
  std::string text;
  for (size_t fault = 0; fault < counts.size(); ++fault) {
    if (counts[fault] == 0) continue;
    if (!text.empty()) text += ", ";
    text += std::to_string(counts[fault]) + " " + WordsOf(static_cast<SampleFault>(fault));
  }
  return text;
}

}  // namespace stoker
