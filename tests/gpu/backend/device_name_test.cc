#include <gtest/gtest.h>

#include "gpu/backend/device.h"

namespace stoker {
namespace {

using Kind = DeviceName::Kind;

TEST(DeviceNameTest, ParsesHostAndCudaNames) {
  EXPECT_EQ(DeviceName::Parse("host").value(), (DeviceName{Kind::kHost, 0}));
  EXPECT_EQ(DeviceName::Parse("cuda").value(), (DeviceName{Kind::kCuda, 0}));
  EXPECT_EQ(DeviceName::Parse("cuda:0").value(), (DeviceName{Kind::kCuda, 0}));
  EXPECT_EQ(DeviceName::Parse("cuda:12").value(), (DeviceName{Kind::kCuda, 12}));
}

TEST(DeviceNameTest, RefusesOtherText) {
  for (const char* text : {"", "gpu", "cpu", "cuda:", "cuda:-1", "cuda:-0", "cuda:+1", "cuda:1x",
                           "cuda: 1", "cuda:99999999999", "CUDA:0", "cuda0", "host:0"}) {
    const Result<DeviceName> name = DeviceName::Parse(text);
    ASSERT_FALSE(name.ok()) << text;
    EXPECT_EQ(name.error().code, Code::kInvalidArgument) << text;
  }
}

TEST(DeviceNameTest, ToStringRoundTrips) {
  for (const char* text : {"host", "cuda:0", "cuda:7"}) {
    EXPECT_EQ(DeviceName::Parse(text).value().ToString(), text);
  }
}

TEST(DeviceNameTest, TheHostCanAlwaysBeOpened) {
  const std::shared_ptr<Device> host = Device::Open({Kind::kHost, 0}).value();
  EXPECT_EQ(host->name(), (DeviceName{Kind::kHost, 0}));
}

}  // namespace
}  // namespace stoker
