// Kinds of options that the subcommands share: how they are checked, and how --help shows them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "transforms/decode/image_info.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's
class App;
class Option;
}  // namespace CLI

namespace stoker::cli {

struct NumberRange {
  int64_t low = 0;
  int64_t high = 0;
};

struct RealRange {
  double low = 0;
  double high = 0;
};

// Each adds an option whose default is what `value` holds now, and shows that behind `what` where
// it is a value that may be given.
// A value that cannot be is an error that names the option, the value and what it may be.
CLI::Option* AddNumber(CLI::App& command, const std::string& name, int64_t& value,
                       NumberRange range, const std::string& what);
// Finite numbers only: nan and inf lie in no range.
CLI::Option* AddReal(CLI::App& command, const std::string& name, double& value, RealRange range,
                     const std::string& what);
CLI::Option* AddSeed(CLI::App& command, const std::string& name, uint64_t& value,
                     const std::string& what);
// Bytes, also as 64MiB (2^20) or 64MB (10^6).
CLI::Option* AddBytes(CLI::App& command, const std::string& name, uint64_t& value,
                      const std::string& what);
CLI::Option* AddChoice(CLI::App& command, const std::string& name, std::string& value,
                       const std::vector<std::string>& choices, const std::string& what);

// What files may ask for; 0: not given.
struct LimitArguments {
  int64_t max_pixels = 0;
  int64_t max_scans = 0;
};

void AddLimits(CLI::App& command, LimitArguments& given);
// What is given; the rest of `limits` stays.
void SetLimits(const LimitArguments& given, DecodeLimits& limits);

}  // namespace stoker::cli
