#include "engine/options/cache_choice.h"

#include <optional>

#include "core/result/byte_size.h"
#include "core/result/try.h"
#include "core/result/utf8.h"

namespace stoker {

namespace {

constexpr std::string_view kRam = "ram:", kDir = "dir:";
constexpr uint64_t kLeastBytes = 1 << 20;

Error CacheRefused(std::string_view text, std::string advice) {
  return Error{.code = Code::kInvalidArgument,
               .cause = "cache is \"" + Printable(text) + "\"",
               .advice = std::move(advice)};
}

}  // namespace

Result<CacheChoice> CacheChoice::Parse(std::string_view text) {
  CacheChoice choice;
  if (text.empty()) return choice;
  std::string_view size = text;
  if (text.starts_with(kRam)) {
    size.remove_prefix(kRam.size());
  } else if (text.starts_with(kDir)) {
    const size_t colon = text.rfind(':');
    if (colon <= kDir.size())
      return CacheRefused(text, "Give \"dir:FOLDER:SIZE\", dir:/scratch:200GB");
    choice.folder = text.substr(kDir.size(), colon - kDir.size());
    if (choice.folder.find('\0') != std::string::npos) {
      return CacheRefused(text, "Give a folder without a NUL");
    }
    size.remove_prefix(colon + 1);
  } else {
    return CacheRefused(text,
                        "Give \"ram:SIZE\" or \"dir:FOLDER:SIZE\": ram:8GiB, dir:/scratch:200GB");
  }
  const std::optional<uint64_t> bytes = ParseByteSize(size);
  if (!bytes || *bytes < kLeastBytes) {
    return CacheRefused(
        text,
        "Give a size of 1MiB or more: a whole number and one of kB, MB, GB, TB, KiB, "
        "MiB, GiB, TiB");
  }
  choice.bytes = *bytes;
  return choice;
}

std::string CacheChoice::ToString() const {
  if (bytes == 0) return {};
  const std::string size = ByteSizeText(bytes);
  return folder.empty() ? std::string(kRam) + size : std::string(kDir) + folder + ":" + size;
}

}  // namespace stoker
