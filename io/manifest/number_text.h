// Parses numbers in text, as programs write them. Independent of the locale.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace stoker {

// Parses a decimal integer; nullopt for other text, and if int64 cannot hold it. Here and below,
// blanks around a number and a plus sign before it are allowed.
std::optional<int64_t> IntegerOf(std::string_view text);

// Parses a decimal number, nan, inf or infinity (in any case), rounded to the nearest double.
// Returns nullopt for other text, hexadecimal numbers, numbers that are too large or too small for
// a double, and integers that int64 cannot hold: such texts are usually identifiers, and rounding
// would make different ones equal.
std::optional<double> NumberOf(std::string_view text);

// Parses digits alone; nullopt for other text, and for more than 65,535.
std::optional<uint16_t> SmallNumberOf(std::string_view text);

}  // namespace stoker
