// Texts that are shown, without what URLs keep secret.
#pragma once

#include <string>
#include <string_view>

#include "core/result.h"

namespace stoker {

// The text with "?…" in place of the query of each http:// and https:// URL in it, which may be a
// signature, and "…" in place of a user's name and password. A URL ends before a space or a quote
// (").
std::string WithoutSecrets(std::string_view text);

// The error with texts that may be shown to anybody. ToString and Message have them anyway.
Error WithoutSecrets(Error error);

}  // namespace stoker
