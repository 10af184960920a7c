// WithoutSecrets: removes the secrets in URLs from texts that are shown.
#pragma once

#include <string>
#include <string_view>

#include "core/result/result.h"

namespace stoker {

// Returns the text with "?…" instead of the query of each http:// and https:// URL in it, which
// may be a signature, and "…" instead of a user's name and password. A URL ends before a space or
// a quote (").
std::string WithoutSecrets(std::string_view text);

// Does the same for the texts of an error. ToString and Message remove the secrets anyway.
Error WithoutSecrets(Error error);

}  // namespace stoker
