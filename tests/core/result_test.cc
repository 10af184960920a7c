#include "engine/core/result.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>

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

TEST(Error, SystemErrorsGetTheirCode) {
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

}  // namespace
}  // namespace stoker
