#include "core/result.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace stoker {
namespace {

TEST(Error, SaysFileOffsetCauseAndAdvice) {
  const Error error{.code = Code::kDataLoss,
                    .cause = "truncated JPEG",
                    .file = "a.jpg",
                    .offset = 12,
                    .advice = "Remove or re-create the file"};
  EXPECT_EQ(error.ToString(),
            "DATA_LOSS: a.jpg at byte 12: truncated JPEG. Remove or re-create the file.");
}

TEST(Error, SystemErrorMapsErrnoToCode) {
  EXPECT_EQ(SystemError(ENOENT, "cannot open", "x").code, Code::kNotFound);
  EXPECT_EQ(SystemError(EACCES, "cannot open", "x").code, Code::kPermissionDenied);
  EXPECT_EQ(SystemError(EROFS, "cannot write", "x").code, Code::kPermissionDenied);
  EXPECT_EQ(SystemError(ENOSPC, "cannot write", "x").code, Code::kResourceExhausted);
  EXPECT_EQ(SystemError(EIO, "cannot read", "x").ToString(),
            "UNAVAILABLE: x: cannot read: Input/output error.");
}

TEST(Result, HoldsAValueOrAnError) {
  Result<std::unique_ptr<int>> good = std::make_unique<int>(3);
  ASSERT_TRUE(good.ok());
  EXPECT_EQ(**good, 3);
  EXPECT_EQ(*std::move(good).value(), 3);
  Result<int> bad = Error{Code::kNotFound, "no such thing"};
  ASSERT_FALSE(bad.ok());
  EXPECT_THROW(std::move(bad).value(), std::runtime_error);
  EXPECT_TRUE(Status().ok());
}

TEST(Result, ValueOfAnLvalueIsAReference) {
  Result<std::string> named = std::string("a");
  named.value() += "b";
  EXPECT_EQ(named.value(), "ab");
  const Result<std::string>& looked_at = named;
  EXPECT_EQ(&looked_at.value(), &*named);
  static_assert(std::is_same_v<decltype(named.value()), std::string&>);
  static_assert(std::is_same_v<decltype(looked_at.value()), const std::string&>);
  static_assert(std::is_same_v<decltype(std::move(named).value()), std::string>);
  EXPECT_EQ(std::move(named).value(), "ab");

  Result<std::string> bad = Error{Code::kNotFound, "no such thing"};
  EXPECT_THROW(bad.value(), std::runtime_error);
  EXPECT_THROW(std::as_const(bad).value(), std::runtime_error);
  const Status done;
  EXPECT_NO_THROW(done.value());
  const Status failed = Error{Code::kNotFound, "no such thing"};
  EXPECT_THROW(failed.value(), std::runtime_error);
}

}  // namespace
}  // namespace stoker
