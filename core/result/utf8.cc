#include "core/result/utf8.h"

#include <cstdint>

namespace stoker {

size_t Utf8Length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  size_t length = 1;
  if (byte(0) >= 0xC2 && byte(0) <= 0xDF) length = 2;
  if (byte(0) >= 0xE0 && byte(0) <= 0xEF) length = 3;
  if (byte(0) >= 0xF0 && byte(0) <= 0xF4) length = 4;
  if (length == 1) return byte(0) < 0x80 ? 1 : 0;
  if (text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  // These bytes begin longer forms than needed, surrogates, and numbers above U+10FFFF.
  const bool outside = (byte(0) == 0xE0 && byte(1) < 0xA0) || (byte(0) == 0xED && byte(1) > 0x9F) ||
                       (byte(0) == 0xF0 && byte(1) < 0x90) || (byte(0) == 0xF4 && byte(1) > 0x8F);
  return outside ? 0 : length;
}

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = Utf8Length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string Printable(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string shown;
  while (!text.empty()) {
    const size_t length = Utf8Length(text);
    const auto first = static_cast<uint8_t>(text[0]);
    // U+0080 to U+009F are control characters too.
    const bool control = first < 0x20 || first == 0x7F ||
                         (first == 0xC2 && length == 2 && static_cast<uint8_t>(text[1]) < 0xA0);
    if (length != 0 && !control) {
      shown += text.substr(0, length);
      text.remove_prefix(length);
      continue;
    }
    if (first == '\n') {
      shown += "\\n";
    } else {
      shown += "\\x";
      shown += kDigits[first / 16U];
      shown += kDigits[first % 16U];
    }
    text.remove_prefix(1);
  }
  return shown;
}

}  // namespace stoker
