#include "io/remote/object_url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include "io/remote/object_settings.h"

namespace stoker {
namespace {

using ::testing::HasSubstr;

TEST(ObjectUrl, HasBucketAndKey) {
  const ObjectUrl url = ParseObjectUrl("s3://photos.2026/train/0 1.tar").value();
  EXPECT_EQ(url.store, ObjectUrl::Store::kS3);
  EXPECT_EQ(url.bucket, "photos.2026");
  EXPECT_EQ(url.key, "train/0 1.tar");
  EXPECT_EQ(ParseObjectUrl("gs://b/k").value().store, ObjectUrl::Store::kGs);
  EXPECT_EQ(ParseObjectUrl("https://host/a?b=c").value().http, "https://host/a?b=c");
}

TEST(ObjectUrl, IsToldFromPaths) {
  for (const char* const url : {"http://h/x", "https://h/x", "s3://b/x", "gs://b/x"}) {
    EXPECT_TRUE(IsObjectUrl(url)) << url;
  }
  for (const char* const path : {"", "/data/x.tar", "s3:/b/x", "S3://b/x", "ftp://h/x", "http:x"}) {
    EXPECT_FALSE(IsObjectUrl(path)) << path;
    EXPECT_FALSE(ParseObjectUrl(path).ok()) << path;
  }
}

TEST(ObjectUrl, IsRefusedWithAReason) {
  const auto cause = [](const char* url) { return ParseObjectUrl(url).error().cause; };
  EXPECT_THAT(cause("s3://bucket"), HasSubstr("no object in it"));
  EXPECT_THAT(cause("s3://bucket/"), HasSubstr("no object in it"));
  EXPECT_THAT(cause("s3:///key"), HasSubstr("no bucket"));
  EXPECT_THAT(cause("s3://bu cket/key"), HasSubstr("no bucket"));
  EXPECT_THAT(cause("http:///x"), HasSubstr("no host"));
  EXPECT_THAT(cause("http://h/a b"), HasSubstr("space"));
  EXPECT_THAT(cause("https://h/a#b.jpg"), HasSubstr("fragment"));
  EXPECT_THAT(cause("https://h/a?b#c"), HasSubstr("fragment"));
  EXPECT_EQ(ParseObjectUrl("s3://b/a#b.jpg").value().key, "a#b.jpg");
  EXPECT_THAT(cause("http://h/a\r\nx: y"), HasSubstr("control character"));
}

TEST(ObjectUrl, ShowsNoPassword) {
  const Error error = ParseObjectUrl("https://me:secret@host/x.tar?token=1").error();
  EXPECT_THAT(error.cause, HasSubstr("password"));
  EXPECT_THAT(error.ToString(), ::testing::Not(HasSubstr("secret")));
  EXPECT_EQ(error.file, "https://…@host/x.tar?…");
}

TEST(ObjectUrl, IsPercentEncoded) {
  EXPECT_EQ(PercentEncoded("a/b c+d~e%\xc3\xa9", /*slashes=*/true), "a/b%20c%2Bd~e%25%C3%A9");
  EXPECT_EQ(PercentEncoded("a/b", /*slashes=*/false), "a%2Fb");
}

TEST(ObjectUrl, IsSplit) {
  const HttpUrlParts parts = SplitHttpUrl("https://host:8080/a/b?c");
  EXPECT_EQ(parts.scheme, "https");
  EXPECT_EQ(parts.host, "host:8080");
  EXPECT_EQ(parts.path, "/a/b?c");
  EXPECT_EQ(SplitHttpUrl("http://host").path, "");
}

TEST(ObjectUrl, IsKnownWithoutItsSignature) {
  for (const auto& [url, known] : std::vector<std::array<const char*, 2>>{
           {"https://h/a", "https://h/a"},
           {"https://h/a?id=1", "https://h/a?id=1"},
           {"https://h/a?id=1&X-Amz-Signature=1&X-Amz-Date=2&versionId=3",
            "https://h/a?id=1&versionId=3"},
           {"https://h/a?x-goog-signature=1", "https://h/a"},
           {"https://h/a?Expires=1&Signature=2&Key-Pair-Id=3&id=4", "https://h/a?id=4"},
           {"https://h/a?expires=1&policy=2", "https://h/a?expires=1&policy=2"},
           {"https://h/a?sv=1&sp=2&sig=3&snapshot=4", "https://h/a?snapshot=4"},
           {"https://h/a?sv=1&sp=2", "https://h/a?sv=1&sp=2"},
           {"s3://b/a?sig=1", "s3://b/a?sig=1"}}) {
    EXPECT_EQ(WithoutSignature(url), known);
    EXPECT_EQ(ObjectIdentity(url), known);
  }
}

// Two servers may have buckets of the same name.
TEST(ObjectUrl, OfABucketIsKnownWithItsEndpoint) {
  setenv("AWS_ENDPOINT_URL", "http://one", 1);
  const std::string one = ObjectIdentity("s3://b/a");
  setenv("AWS_ENDPOINT_URL", "http://two", 1);
  EXPECT_NE(ObjectIdentity("s3://b/a"), one);
  EXPECT_EQ(ObjectIdentity("https://h/a"), "https://h/a");
  unsetenv("AWS_ENDPOINT_URL");
}

}  // namespace
}  // namespace stoker
