#include "core/result/secrets.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

TEST(WithoutSecrets, LeavesOutQueriesAndPasswords) {
  EXPECT_EQ(WithoutSecrets("https://h/x.tar?X-Amz-Signature=12"), "https://h/x.tar?…");
  EXPECT_EQ(WithoutSecrets("'http://h?a' and \"https://i/?b\" \nhttp://j/k"),
            "'http://h?… and \"https://i/?…\" \nhttp://j/k");
  EXPECT_EQ(WithoutSecrets("http://me:pass@h:80/x@y"), "http://…@h:80/x@y");
  EXPECT_EQ(WithoutSecrets("https://?"), "https://?…");
}

TEST(WithoutSecrets, LeavesOtherTextsAsTheyAre) {
  for (const char* const text : {"", "what?", "/data/?.tar", "s3://b/what?.tar", "http:/",
                                 "http://", "https://h/x.tar is a@b"}) {
    EXPECT_EQ(WithoutSecrets(text), text);
  }
}

TEST(WithoutSecrets, IsWhatErrorsShow) {
  const Error error{.code = Code::kDataLoss,
                    .cause = "it differs from http://h/b?c",
                    .file = "http://h/a?d",
                    .advice = "Open http://h/e?f"};
  EXPECT_EQ(error.Message(), "http://h/a?…: it differs from http://h/b?…. Open http://h/e?….");
  EXPECT_EQ(WithoutSecrets(error).file, "http://h/a?…");
}

}  // namespace
}  // namespace stoker
