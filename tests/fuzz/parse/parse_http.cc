#include "tests/fuzz/parse/parse_http.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "io/remote/http_response.h"
#include "io/remote/ini_file.h"
#include "io/remote/object_request.h"
#include "io/remote/object_url.h"
#include "tests/fuzz/promise.h"

namespace stoker::testing {

namespace {

void TakeHeaders(std::string_view text) {
  HttpResponse response;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    response.AddHeader(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  Promise(response.status >= 0 && response.status <= 999, "a status of three digits");
  if (!response.range) return;
  Promise(response.range->first.has_value() == response.range->last.has_value(), "both or none");
  if (response.range->first) Promise(*response.range->first <= *response.range->last, "a range");
}

void TakeUrl(std::string_view text) {
  const Result<ObjectUrl> url = ParseObjectUrl(text);
  Promise(BeforeQuery(text).size() <= text.size(), "a part of the URL");
  if (!url.ok()) return;
  Promise(IsObjectUrl(text), "a scheme");
  if (url->store != ObjectUrl::Store::kHttp) {
    Promise(!url->bucket.empty() && !url->key.empty(), "a bucket and a key");
  }
  const AwsCredentials aws{.key_id = "A", .secret = "b", .token = ""};
  const ObjectRequest request =
      BuildObjectRequest(*url, {}, {.aws = aws, .google_token = "t"}, /*now=*/0);
  Promise(request.url.find_first_of("\r\n ") == std::string::npos, "one line");
  for (const std::string& header : request.headers) {
    Promise(header.find_first_of("\r\n") == std::string::npos, "one line");
  }
}

}  // namespace

void ParseFuzzedHttp(std::span<const uint8_t> input) {
  const std::string_view text(reinterpret_cast<const char*>(input.data()), input.size());
  TakeHeaders(text);
  TakeUrl(text);
  for (const auto& [name, value] : IniSection(text, "default")) {
    Promise(name.find('\n') == std::string::npos && value.find('\n') == std::string::npos,
            "names and values of one line");
  }
  (void)XmlElement(text, "Code");
  (void)ParseHttpDate(text);
}

}  // namespace stoker::testing
