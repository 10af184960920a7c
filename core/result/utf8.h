// UTF-8, as Unicode defines it: the shortest form, no surrogates, nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace stoker {

// The length of the character at the start of `text`, in bytes; 0 if it is invalid. Precondition:
// the text is not empty.
size_t Utf8Length(std::string_view text);

bool IsUtf8(std::string_view text);

// Returns the text with escapes, \n and \x1b, instead of control characters and of bytes that are
// not UTF-8: safe to print on a terminal, on one line.
std::string Printable(std::string_view text);

}  // namespace stoker
