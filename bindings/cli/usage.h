// What is wrong with a command line, and what was probably meant.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/result.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's
class App;
}

namespace stoker::cli {

// The name of `known` that somebody who typed `given` probably meant: it begins so, or differs by a
// typing error or two. Empty: none.
std::string Nearest(std::string_view given, std::span<const std::string> known);

// That `name` is a subcommand of `app`.
Status CheckCommand(const CLI::App& app, const std::string& name);

// After parsing has failed, for which CLI11 says `what`. Arguments that nobody knows come first, in
// the order in which they were given: what else is wrong is often but their consequence.
Error UsageError(const CLI::App& app, const std::string& what);

}  // namespace stoker::cli
