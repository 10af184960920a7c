// Error messages for a wrong command line, with a suggestion of what was meant.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/result/result.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's
class App;
}

namespace stoker::cli {

// Returns the name in `known` that a user who typed `given` probably meant: one that begins with
// `given`, or differs from it by a typing error or two. Empty if there is none.
std::string Nearest(std::string_view given, std::span<const std::string> known);

// Checks that `name` is a subcommand of `app`.
Status CheckCommand(const CLI::App& app, const std::string& name);

// Returns the error after parsing has failed; `what` is CLI11's message. Unknown arguments come
// first, in the order in which they were given: other errors are often just consequences.
Error UsageError(const CLI::App& app, const std::string& what);

}  // namespace stoker::cli
