// Values as JSON.
#pragma once

#include <optional>
#include <string>

namespace stoker {

// With this number of decimals. Null if it is not finite: JSON has no such numbers.
std::string JsonNumber(double value, int decimals);
// A text that needs no escapes but those of quotes and backslashes.
std::string JsonText(const std::optional<std::string>& text);

}  // namespace stoker
