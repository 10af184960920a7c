#include "core/batch/channels.h"

#include <charconv>

namespace stoker {

std::string NameOf(Channels channels) {
  switch (channels) {
    case Channels::kRgb:
      return "rgb";
    case Channels::kGray:
      return "gray";
    case Channels::kRgba:
      return "rgba";
    case Channels::kUnchanged:
      return "unchanged";
  }
  return std::to_string(CountOf(channels));
}

Result<Channels> ParseChannels(std::string_view name) {
  for (const Channels each : {Channels::kRgb, Channels::kGray, Channels::kRgba}) {
    if (name == NameOf(each)) return each;
  }
  int count = 0;
  const auto [read, error] = std::from_chars(name.data(), name.data() + name.size(), count);
  if (error == std::errc() && read == name.data() + name.size() && count >= 1 &&
      count <= kMostChannels) {
    return StoredChannels(count);
  }
  const std::string number =
      "number of channels that every file has, 1 to " + std::to_string(kMostChannels);
  return Error{.code = Code::kInvalidArgument,
               .cause = "channels is \"" + std::string(name) + "\"",
               .advice = name == NameOf(Channels::kUnchanged)
                             ? "The rows of a batch have one shape: give the " + number
                             : "Use \"rgb\", \"gray\", \"rgba\", or the " + number};
}

}  // namespace stoker
