// HttpResponse: the parsed headers of a response.
#pragma once

#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>

namespace stoker {

struct HttpResponse {
  // "Content-Range: bytes 0-9/100". Without a first and last byte: "bytes */100".
  struct Range {
    std::optional<uint64_t> first, last;  // inclusive; both are set, or neither
    std::optional<uint64_t> total;        // of the object; nullopt means "*"
  };

  int status = 0;                          // 206; 0 means no status line has come
  std::optional<uint64_t> content_length;  // bytes of the body
  bool chunked = false;                    // the body itself marks where it ends
  std::optional<Range> range;
  std::string encoding;  // Content-Encoding: "gzip"; empty means the body is the object's bytes
  std::string etag;
  int64_t modified_s = 0;  // Last-Modified, since 1970; 0 means unknown
  // Retry-After: a number of seconds, or a date.
  std::optional<int64_t> retry_after_s;
  std::optional<int64_t> retry_at_s;  // since 1970
  std::string bucket_region;          // x-amz-bucket-region
  bool of_store = false;  // it has a header that only S3, Google Cloud Storage and Azure send, and
                          // servers with their interfaces

  // Takes one header line, with or without its line end. A status line begins a new response. Lines
  // that cannot be parsed are skipped.
  void AddHeader(std::string_view line);
};

// Returns the time of "Sun, 06 Nov 1994 08:49:37 GMT", in seconds since 1970; nullopt for other
// text.
std::optional<int64_t> ParseHttpDate(std::string_view text);

// Returns the text of one element in a small XML document, as in the errors of S3: of <Code> in
// "<Error><Code>NoSuchKey</Code>". Empty if there is none.
std::string_view XmlElement(std::string_view document, std::string_view name);

}  // namespace stoker
