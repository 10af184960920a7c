#include "core/result/result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "tests/testing/storage/temp_folder.h"

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

TEST(Error, SystemErrorSaysWhatIsOddInThePathOfAMissingFile) {
  const auto advice = [](const char* path) {
    return SystemError(ENOENT, "cannot open", path).advice;
  };
  using ::testing::HasSubstr;
  EXPECT_THAT(advice(R"(/data/a\0.png)"), HasSubstr("Write / between folders"));
  EXPECT_THAT(advice(R"(/data/C:\photos\0.png)"), HasSubstr("without a drive"));
  EXPECT_THAT(advice("D:/photos/0.png"), HasSubstr("without a drive"));
  for (const char* path : {"file:///a.png", "/data/file:///a.png", "/data/file:/a.png"}) {
    EXPECT_THAT(advice(path), HasSubstr("without file://")) << path;
  }
  EXPECT_THAT(advice("/data/hdfs:/x/a.png"), HasSubstr("URLs that begin with http://"));
  EXPECT_THAT(advice("/data/~/a.png"), HasSubstr("Only shells take ~"));
  for (const char* path :
       {"", "/", "a.png", "/data/~a/b~/a:b.png", "/data/:/12:/a_b:/x", "/data/run1:/a.png"}) {
    EXPECT_EQ(advice(path), "") << path;
  }
  EXPECT_EQ(SystemError(EACCES, "cannot open", "~/a.png").advice, "");
}

TEST(Error, SystemErrorSaysNothingOfFoldersThatExist) {
  const testing::TempFolder folder;
  for (const char* name : {R"(a\b)", "C:", "~", "file:", "s3:"}) {
    const std::string odd = folder.path() + "/" + name;
    EXPECT_NE(SystemError(ENOENT, "cannot open", odd + "/1.png").advice, "") << name;
    std::filesystem::create_directory(odd);
    EXPECT_EQ(SystemError(ENOENT, "cannot open", odd + "/1.png").advice, "") << name;
    EXPECT_NE(SystemError(ENOENT, "cannot open", odd + R"(/a\1.png)").advice, "") << name;
  }
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
