#include "io/remote/http_response.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace stoker {

namespace {

constexpr size_t kLongestHeader = 1024;  // the longest header that is kept

std::string_view Stripped(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\r\n";
  const size_t begin = text.find_first_not_of(kSpaces);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpaces) + 1 - begin);
}

char LowerAscii(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool EqualNames(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, {}, LowerAscii, LowerAscii);
}

template <typename Number>
std::optional<Number> WholeNumber(std::string_view text) {
  Number number = 0;
  if (text.empty() || text[0] == '-') return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// Parses "bytes 0-9/100".
std::optional<HttpResponse::Range> ParseRange(std::string_view text) {
  constexpr std::string_view kUnit = "bytes ";
  const size_t slash = text.find('/');
  if (!text.starts_with(kUnit) || slash == std::string_view::npos) return std::nullopt;
  HttpResponse::Range range;
  const std::string_view total = Stripped(text.substr(slash + 1));
  range.total = WholeNumber<uint64_t>(total);
  if (!range.total && total != "*") return std::nullopt;
  const std::string_view bytes = Stripped(text.substr(kUnit.size(), slash - kUnit.size()));
  if (bytes == "*") return range;
  const size_t dash = bytes.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  range.first = WholeNumber<uint64_t>(bytes.substr(0, dash));
  range.last = WholeNumber<uint64_t>(bytes.substr(dash + 1));
  if (!range.first || !range.last || *range.last < *range.first) return std::nullopt;
  return range;
}

// Parses "HTTP/1.1 206 Partial Content".
std::optional<int> ParseStatus(std::string_view line) {
  const size_t space = line.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  const std::string_view digits = line.substr(space + 1, 3);
  return digits.size() == 3 ? WholeNumber<int>(digits) : std::nullopt;
}

}  // namespace

void HttpResponse::AddHeader(std::string_view line) {
  if (line.starts_with("HTTP/")) {
    *this = {};
    status = ParseStatus(line).value_or(0);
    return;
  }
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return;
  const std::string_view name = line.substr(0, colon), value = Stripped(line.substr(colon + 1));
  if (value.size() > kLongestHeader) return;
  if (EqualNames(name, "content-length")) {
    content_length = WholeNumber<uint64_t>(value);
  } else if (EqualNames(name, "transfer-encoding")) {
    chunked = EqualNames(value, "chunked");
  } else if (EqualNames(name, "content-range")) {
    range = ParseRange(value);
  } else if (EqualNames(name, "content-encoding")) {
    // S3 stores the encoding of the upload, aws-chunked, but does not send the object so encoded.
    encoding = EqualNames(value, "identity") || EqualNames(value, "aws-chunked") ? "" : value;
  } else if (EqualNames(name, "etag")) {
    etag = value;
  } else if (EqualNames(name, "last-modified")) {
    modified_s = ParseHttpDate(value).value_or(0);
  } else if (EqualNames(name, "retry-after")) {
    retry_after_s = WholeNumber<int64_t>(value);
    retry_at_s = ParseHttpDate(value);
  } else if (EqualNames(name, "x-amz-bucket-region")) {
    bucket_region = value;
  } else if (EqualNames(name, "x-amz-request-id") || EqualNames(name, "x-goog-hash") ||
             EqualNames(name, "x-ms-request-id")) {
    of_store = true;
  }
}

std::optional<int64_t> ParseHttpDate(std::string_view text) {
  constexpr std::string_view kForm = "Sun, 06 Nov 1994 08:49:37 GMT";
  constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";
  if (text.size() != kForm.size() || !text.ends_with(" GMT")) return std::nullopt;
  const auto number = [text](size_t at, size_t digits) {
    return WholeNumber<int>(text.substr(at, digits)).value_or(-1);
  };
  const size_t month = kMonths.find(text.substr(8, 3));
  std::tm parts{};
  parts.tm_mday = number(5, 2);
  parts.tm_mon = static_cast<int>(month / 3);
  parts.tm_year = number(12, 4) - 1900;
  parts.tm_hour = number(17, 2);
  parts.tm_min = number(20, 2);
  parts.tm_sec = number(23, 2);
  const bool sound = month != std::string_view::npos && month % 3 == 0 && parts.tm_mday >= 1 &&
                     parts.tm_mday <= 31 && parts.tm_year >= 70 && parts.tm_hour >= 0 &&
                     parts.tm_hour < 24 && parts.tm_min >= 0 && parts.tm_min < 60 &&
                     parts.tm_sec >= 0 && parts.tm_sec <= 60;
  if (!sound) return std::nullopt;
  return timegm(&parts);
}

std::string_view XmlElement(std::string_view document, std::string_view name) {
  const std::string open = "<" + std::string(name) + ">", close = "</" + std::string(name) + ">";
  const size_t begin = document.find(open);
  if (begin == std::string_view::npos) return {};
  const std::string_view rest = document.substr(begin + open.size());
  const size_t end = rest.find(close);
  return end == std::string_view::npos ? std::string_view() : rest.substr(0, end);
}

}  // namespace stoker
