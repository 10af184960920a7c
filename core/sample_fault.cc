#include "core/sample_fault.h"

namespace stoker {

SampleFault FaultOf(const Error& error) {
  switch (error.code) {
    case Code::kNotFound:
      return SampleFault::kVanished;
    case Code::kDataLoss:
      return error.detail == Error::Detail::kTruncated ? SampleFault::kTruncated
                                                       : SampleFault::kUndecodable;
    case Code::kResourceExhausted:
      return SampleFault::kOverLimits;
    case Code::kUnimplemented:
      return SampleFault::kUnsupported;
    default:
      return SampleFault::kUnreadable;
  }
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
      return "over the limits";
    case SampleFault::kUnsupported:
      return "unsupported";
  }
  return "";
}

}  // namespace stoker
