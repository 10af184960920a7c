#include "gpu/backend/device.h"

#include <charconv>

#include "gpu/backend/open_device.h"

namespace stoker {

namespace {

constexpr std::string_view kCuda = "cuda";

Error NoSuchName(std::string_view text) {
  return {.code = Code::kInvalidArgument,
          .cause = "no device is called \"" + std::string(text) + "\"",
          .advice = "Use \"cuda\", \"cuda:N\" with N from 0, or \"host\""};
}

}  // namespace

DeviceStream LegacyDefaultStream() {
  return {reinterpret_cast<void*>(uintptr_t{1})};  // NOLINT(performance-no-int-to-ptr): a handle
}

Result<DeviceName> DeviceName::Parse(std::string_view text) {
  if (text == "host") return DeviceName{Kind::kHost, 0};
  if (text == kCuda) return DeviceName{Kind::kCuda, 0};
  if (!text.starts_with("cuda:")) return NoSuchName(text);
  const std::string_view digits = text.substr(kCuda.size() + 1);
  int ordinal = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), ordinal);
  if (error != std::errc() || end != digits.data() + digits.size() || digits.front() == '-') {
    return NoSuchName(text);
  }
  return DeviceName{Kind::kCuda, ordinal};
}

std::string DeviceName::ToString() const {
  return kind == Kind::kHost ? "host" : "cuda:" + std::to_string(ordinal);
}

Result<std::shared_ptr<Device>> Device::Open(DeviceName name) {
  if (name.kind == DeviceName::Kind::kCuda) return OpenCudaDevice(name.ordinal);
  return MakeHostDevice();
}

}  // namespace stoker
