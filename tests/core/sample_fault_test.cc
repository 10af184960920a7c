#include "core/result/sample_fault.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <optional>
#include <set>
#include <string>

namespace stoker {
namespace {

using Detail = Error::Detail;

TEST(SampleFault, OfEachCode) {
  struct Case {
    Code code;
    Detail detail;
    std::optional<SampleFault> fault;
  };
  constexpr Case kCases[] = {
      {Code::kInvalidArgument, Detail::kNone, SampleFault::kUnreadable},
      {Code::kNotFound, Detail::kNone, SampleFault::kVanished},
      {Code::kPermissionDenied, Detail::kNone, SampleFault::kUnreadable},
      {Code::kPermissionDenied, Detail::kForbidden, SampleFault::kForbidden},
      {Code::kDataLoss, Detail::kNone, SampleFault::kUndecodable},
      {Code::kDataLoss, Detail::kTruncated, SampleFault::kTruncated},
      {Code::kResourceExhausted, Detail::kNone, std::nullopt},
      {Code::kResourceExhausted, Detail::kOverLimits, SampleFault::kOverLimits},
      {Code::kFailedPrecondition, Detail::kNone, std::nullopt},
      {Code::kUnimplemented, Detail::kNone, SampleFault::kUnsupported},
      {Code::kCancelled, Detail::kNone, std::nullopt},
      {Code::kUnavailable, Detail::kNone, SampleFault::kUnreadable},
  };
  for (const Case& c : kCases) {
    EXPECT_EQ(FaultOf({.code = c.code, .cause = "x", .detail = c.detail}), c.fault)
        << CodeName(c.code);
  }
}

TEST(SampleFault, OfSystemErrors) {
  const auto fault = [](int error_number) { return FaultOf(SystemError(error_number, "x", "y")); };
  EXPECT_EQ(fault(ENOENT), SampleFault::kVanished);
  for (const int refused : {EACCES, EPERM, EIO, ESTALE, ELOOP, ENAMETOOLONG, EISDIR}) {
    EXPECT_EQ(fault(refused), SampleFault::kUnreadable) << refused;
  }
  for (const int machine : {EMFILE, ENFILE, ENOMEM}) {
    EXPECT_EQ(fault(machine), std::nullopt) << machine;
  }
}

TEST(SampleFault, EachHasAName) {
  std::set<std::string> names;
  for (int i = 0; i < kSampleFaults; ++i) names.insert(NameOf(static_cast<SampleFault>(i)));
  EXPECT_EQ(names.size(), static_cast<size_t>(kSampleFaults));
  EXPECT_FALSE(names.contains(""));
}

}  // namespace
}  // namespace stoker
