#include "bench/device/json.h"

#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>

namespace stoker {

std::string JsonNumber(double value, int decimals) {
  if (!std::isfinite(value)) return "null";
  char text[std::numeric_limits<double>::max_exponent10 + 32];
  const auto end = std::to_chars(text, std::end(text), value, std::chars_format::fixed, decimals);
  return {text, end.ptr};
}

std::string JsonText(const std::optional<std::string>& text) {
  if (!text) return "null";
  std::string json = "\"";
  for (const char c : *text) {
    if (c == '"' || c == '\\') json += '\\';
    json += c;
  }
  return json + '"';
}

}  // namespace stoker
