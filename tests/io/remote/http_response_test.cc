#include "io/remote/http_response.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <limits>
#include <string>

namespace stoker {
namespace {

HttpResponse Of(std::initializer_list<const char*> lines) {
  HttpResponse response;
  for (const char* const line : lines) response.AddHeader(line);
  return response;
}

TEST(HttpResponse, HasWhatItsHeadersSay) {
  const HttpResponse response = Of({"HTTP/1.1 206 Partial Content\r\n", "content-LENGTH: 10\r\n",
                                    "Content-Range:  bytes 5-14/100 \r\n", "ETag: \"abc\"\r\n",
                                    "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n", "\r\n"});
  EXPECT_EQ(response.status, 206);
  EXPECT_EQ(response.content_length, 10);
  ASSERT_TRUE(response.range);
  EXPECT_EQ(response.range->first, 5);
  EXPECT_EQ(response.range->last, 14);
  EXPECT_EQ(response.range->total, 100);
  EXPECT_EQ(response.etag, "\"abc\"");
  EXPECT_EQ(response.modified_s, 784111777);
  EXPECT_FALSE(response.chunked);
}

TEST(HttpResponse, BeginsAnewWithAStatusLine) {
  const HttpResponse response =
      Of({"HTTP/1.1 302 Found", "ETag: \"abc\"", "Content-Length: 3", "HTTP/2 200 "});
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.etag, "");
  EXPECT_FALSE(response.content_length);
}

TEST(HttpResponse, HasWhenToTryAgain) {
  EXPECT_EQ(Of({"Retry-After: 7"}).retry_after_s, 7);
  EXPECT_EQ(Of({"Retry-After: Sun, 06 Nov 1994 08:49:37 GMT"}).retry_at_s, 784111777);
  EXPECT_FALSE(Of({"Retry-After: soon"}).retry_after_s);
  EXPECT_FALSE(Of({"Retry-After: -1"}).retry_after_s);
}

TEST(HttpResponse, HasTheSizeOfAnObjectThatEndsBefore) {
  const HttpResponse response = Of({"Content-Range: bytes */100"});
  ASSERT_TRUE(response.range);
  EXPECT_FALSE(response.range->first);
  EXPECT_EQ(response.range->total, 100);
  EXPECT_FALSE(Of({"Content-Range: bytes 0-9/*"}).range->total);
}

TEST(HttpResponse, SkipsWhatIsNoHeader) {
  for (const char* const range :
       {"bytes 9-5/100", "bytes 0-9", "0-9/100", "bytes 0-/100", "bytes -9/100", "bytes a-b/c",
        "bytes 0-99999999999999999999/100", "bytes 0 - 9/100", "bytes /", ""}) {
    EXPECT_FALSE(Of({("Content-Range: " + std::string(range)).c_str()}).range) << range;
  }
  EXPECT_FALSE(Of({"Content-Length: 18446744073709551616"}).content_length);
  EXPECT_EQ(Of({"Content-Length: 18446744073709551615"}).content_length,
            std::numeric_limits<uint64_t>::max());
  EXPECT_FALSE(Of({"Content-Length: 1 2"}).content_length);
  EXPECT_EQ(Of({"HTTP/1.1 2"}).status, 0);
  EXPECT_EQ(Of({"HTTP/"}).status, 0);
  EXPECT_EQ(Of({"ETag"}).etag, "");
  EXPECT_EQ(Of({("ETag: " + std::string(5000, 'x')).c_str()}).etag, "");
}

TEST(HttpResponse, HasDates) {
  EXPECT_EQ(ParseHttpDate("Thu, 01 Jan 1970 00:00:00 GMT"), 0);
  for (const char* const text :
       {"", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun, 06 Nob 1994 08:49:37 GMT",
        "Sun, 06 ovD 1994 08:49:37 GMT", "Sun, 00 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 24:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 CET",
        "Sun, 06 Nov 0000 08:49:37 GMT"}) {
    EXPECT_FALSE(ParseHttpDate(text)) << text;
  }
}

TEST(HttpResponse, HasElementsOfXml) {
  const char* const document = "<Error><Code>NoSuchKey</Code><Message>no</Message></Error>";
  EXPECT_EQ(XmlElement(document, "Code"), "NoSuchKey");
  EXPECT_EQ(XmlElement(document, "Bucket"), "");
  EXPECT_EQ(XmlElement("<Code>cut", "Code"), "");
  EXPECT_EQ(XmlElement("</Code><Code>", "Code"), "");
}

}  // namespace
}  // namespace stoker
