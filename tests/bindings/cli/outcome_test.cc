#include "bindings/cli/outcome.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace stoker::cli {
namespace {

TEST(ExitCode, DistinguishesDataUsageAndSystemErrors) {
  EXPECT_EQ(ExitCodeOf({Code::kNotFound, "no such folder", "photos"}), kExitData);
  EXPECT_EQ(ExitCodeOf({Code::kDataLoss, "truncated", "a.jpg", 12}), kExitData);
  EXPECT_EQ(ExitCodeOf({Code::kInvalidArgument, "no image in it", "photos"}), kExitData);
  EXPECT_EQ(ExitCodeOf({Code::kUnimplemented, "a PNG", "a.png"}), kExitData);
  EXPECT_EQ(ExitCodeOf({Code::kInvalidArgument, "batch_size is 0"}), kExitUsage);
  EXPECT_EQ(ExitCodeOf({Code::kUnimplemented, "io_uring"}), kExitUsage);
  EXPECT_EQ(ExitCodeOf({Code::kPermissionDenied, "may not be read", "a.jpg"}), kExitSystem);
  EXPECT_EQ(ExitCodeOf({.code = Code::kResourceExhausted,
                        .cause = "too many pixels",
                        .file = "a.jpg",
                        .detail = Error::Detail::kOverLimits}),
            kExitData);
  EXPECT_EQ(ExitCodeOf({Code::kResourceExhausted, "no memory left", "a.jpg", 20}), kExitSystem);
  EXPECT_EQ(ExitCodeOf({Code::kResourceExhausted, "too many open files", "a.jpg"}), kExitSystem);
  EXPECT_EQ(ExitCodeOf({Code::kResourceExhausted, "memory_budget is too small"}), kExitSystem);
  EXPECT_EQ(ExitCodeOf({Code::kUnavailable, "I/O error", "a.jpg"}), kExitSystem);
  EXPECT_EQ(ExitCodeOf({Code::kCancelled, "stopped"}), 130);
}

TEST(ExitCode, AnUnwritableOutputIsASystemError) {
  for (const Code code : {Code::kNotFound, Code::kInvalidArgument, Code::kResourceExhausted,
                          Code::kPermissionDenied, Code::kUnavailable}) {
    EXPECT_EQ(ExitCodeOf({code, "cannot write", "out/page"}, {"trace", "out/page"}), kExitSystem);
  }
  EXPECT_EQ(ExitCodeOf({Code::kNotFound, "no such folder", "photos"}, {"page"}), kExitData);
  EXPECT_EQ(ExitCodeOf({Code::kInvalidArgument, "batch_size is 0"}, {""}), kExitUsage);
}

TEST(ErrorLine, HasFileOffsetCauseAndAdvice) {
  EXPECT_EQ(ErrorLine({Code::kDataLoss, "truncated JPEG", "p/a.jpg", 12, "Remove the file"}),
            "stoker: error: p/a.jpg at byte 12: truncated JPEG. Remove the file.\n");
  EXPECT_EQ(ErrorLine({Code::kNotFound, "no such folder.", "p"}),
            "stoker: error: p: no such folder.\n");
}

TEST(ErrorLine, NamesOptionsByTheirFlags) {
  const Error error{.code = Code::kResourceExhausted,
                    .cause = "no room for the batch_size",
                    .changes = {{OptionChange::How::kSetToAtLeast, "memory_budget", 9},
                                {OptionChange::How::kLower, "batch_size"}}};
  EXPECT_EQ(ErrorLine(error),
            "stoker: error: no room for the batch_size. Set --memory-budget to 9 or more, or "
            "lower --batch-size.\n");
  EXPECT_EQ(nlohmann::json::parse(ErrorJson(error, kExitSystem))["error"]["advice"],
            "Set --memory-budget to 9 or more, or lower --batch-size");
}

TEST(ErrorLine, IsOneLineWhateverTheFilesName) {
  EXPECT_EQ(ErrorLine({Code::kDataLoss, "bad", "a\nb\x1b[31m.jpg"}),
            "stoker: error: a\\x0ab\\x1b[31m.jpg: bad.\n");
}

TEST(ErrorJson, HasEveryMember) {
  const auto json = nlohmann::json::parse(
      ErrorJson({Code::kDataLoss, "truncated JPEG", "p/a.jpg", 12, "Remove the file"}, kExitData));
  const nlohmann::json& error = json.at("error");
  EXPECT_EQ(error.at("code"), "DATA_LOSS");
  EXPECT_EQ(error.at("cause"), "truncated JPEG");
  EXPECT_EQ(error.at("file"), "p/a.jpg");
  EXPECT_EQ(error.at("offset"), 12);
  EXPECT_EQ(error.at("advice"), "Remove the file");
  EXPECT_EQ(error.at("exit_code"), 1);
}

TEST(ErrorJson, IsUtf8WhateverTheFilesName) {
  const auto json =
      nlohmann::json::parse(ErrorJson({Code::kDataLoss, "bad", "a\xff\n.jpg"}, kExitData));
  EXPECT_EQ(json.at("error").at("file"), "a\xef\xbf\xbd\n.jpg");
  EXPECT_TRUE(json.at("error").at("offset").is_null());
}

}  // namespace
}  // namespace stoker::cli
