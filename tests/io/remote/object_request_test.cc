#include "io/remote/object_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace stoker {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::time_t kTime = 1369353600;  // 2013-05-24 00:00:00
constexpr char kEmpty[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

// The account and the requests on AWS' page "Signature Calculations for the Authorization Header".
const AwsCredentials kExample{.key_id = "AKIAIOSFODNN7EXAMPLE",
                              .secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
                              .token = ""};

std::string Signed(const std::string& path, const std::string& query, bool range) {
  std::vector<HeaderToSign> headers = {{"host", "examplebucket.s3.amazonaws.com"}};
  if (range) headers.push_back({"range", "bytes=0-9"});
  headers.push_back({"x-amz-content-sha256", kEmpty});
  headers.push_back({"x-amz-date", "20130524T000000Z"});
  return AwsAuthorization(kExample, "us-east-1", "s3", kTime, path, query, headers, kEmpty);
}

TEST(ObjectRequest, HasTheSignaturesOfAwsExamples) {
  EXPECT_EQ(Signed("/test.txt", "", /*range=*/true),
            "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"
            "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,Signature="
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
  EXPECT_THAT(Signed("/", "lifecycle=", false),
              HasSubstr("fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"));
  EXPECT_THAT(Signed("/", "max-keys=2&prefix=J", false),
              HasSubstr("34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"));
}

ObjectRequest RequestFor(const char* url, const ObjectSettings& settings,
                         const ObjectCredentials& credentials = {}) {
  return BuildObjectRequest(ParseObjectUrl(url).value(), settings, credentials, kTime);
}

TEST(ObjectRequest, OfAwsHasTheBucketInTheHost) {
  ObjectSettings settings;
  settings.s3_region = "eu-central-1";
  EXPECT_EQ(RequestFor("s3://photos/a b.tar", settings).url,
            "https://photos.s3.eu-central-1.amazonaws.com/a%20b.tar");
  // A certificate for *.s3… does not cover two parts.
  EXPECT_EQ(RequestFor("s3://photos.new/a", settings).url,
            "https://s3.eu-central-1.amazonaws.com/photos.new/a");
}

TEST(ObjectRequest, OfAnotherServerHasTheBucketInThePath) {
  ObjectSettings settings;
  settings.s3_endpoint = "http://127.0.0.1:9000";
  EXPECT_EQ(RequestFor("s3://photos/a/b", settings).url, "http://127.0.0.1:9000/photos/a/b");
}

TEST(ObjectRequest, IsAnonymousWithoutCredentials) {
  EXPECT_THAT(RequestFor("s3://photos/a", {}).headers, IsEmpty());
  EXPECT_THAT(RequestFor("gs://photos/a", {}).headers, IsEmpty());
}

TEST(ObjectRequest, IsSignedWithASessionsToken) {
  AwsCredentials aws = kExample;
  aws.token = "of this session";
  const ObjectRequest request = RequestFor("s3://photos/a", {}, {.aws = aws, .google_token = ""});
  EXPECT_THAT(request.headers, Contains("x-amz-security-token: of this session"));
  EXPECT_THAT(request.headers, Contains("x-amz-date: 20130524T000000Z"));
  EXPECT_THAT(
      request.headers,
      Contains(HasSubstr(
          "SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token,Signature=")));
  EXPECT_FALSE(request.follows_redirects);
}

TEST(ObjectRequest, OfGoogleHasItsToken) {
  const ObjectRequest request =
      RequestFor("gs://photos/a b", {}, {.aws = kExample, .google_token = "ya29"});
  EXPECT_EQ(request.url, "https://storage.googleapis.com/photos/a%20b");
  EXPECT_THAT(request.headers, ElementsAre("authorization: Bearer ya29"));
  EXPECT_FALSE(request.follows_redirects);
}

TEST(ObjectRequest, ShowsNoTokenOnTheWay) {
  ObjectSettings settings;
  settings.gs_endpoint = "http://127.0.0.1:4443";
  const ObjectRequest request =
      RequestFor("gs://photos/a", settings, {.aws = {}, .google_token = "ya29"});
  EXPECT_EQ(request.url, "http://127.0.0.1:4443/photos/a");
  EXPECT_THAT(request.headers, IsEmpty());
}

TEST(ObjectRequest, OfHttpHasNoCredentials) {
  const ObjectRequest request =
      RequestFor("https://host/a?b", {}, {.aws = kExample, .google_token = "ya29"});
  EXPECT_EQ(request.url, "https://host/a?b");
  EXPECT_THAT(request.headers, IsEmpty());
  EXPECT_TRUE(request.follows_redirects);
}

}  // namespace
}  // namespace stoker
