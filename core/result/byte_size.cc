#include "core/result/byte_size.h"

#include <charconv>
#include <system_error>

namespace stoker {

namespace {

struct Unit {
  const char* name;
  uint64_t bytes;
};

// The largest one first.
constexpr Unit kUnits[] = {{"TiB", uint64_t{1} << 40},
                           {"TB", 1'000'000'000'000},
                           {"GiB", uint64_t{1} << 30},
                           {"GB", 1'000'000'000},
                           {"MiB", uint64_t{1} << 20},
                           {"MB", 1'000'000},
                           {"KiB", uint64_t{1} << 10},
                           {"kB", 1'000},
                           {"B", 1}};

}  // namespace

std::optional<uint64_t> ParseByteSize(std::string_view text) {
  constexpr uint64_t kMost = uint64_t{1} << 63;
  uint64_t number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  for (const Unit& unit : kUnits) {
    if (text != unit.name) continue;
    if (number >= kMost / unit.bytes) return std::nullopt;
    return number * unit.bytes;
  }
  return std::nullopt;
}

std::string ByteSizeText(uint64_t bytes) {
  const Unit* unit = kUnits;
  while (bytes == 0 ? unit->bytes != 1 : bytes % unit->bytes != 0) ++unit;
  return std::to_string(bytes / unit->bytes) + unit->name;
}

}  // namespace stoker
