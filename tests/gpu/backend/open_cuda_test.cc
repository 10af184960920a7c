// Opening and looking for CUDA devices, and the errors when there is none, on a FakeCuda.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <memory>
#include <string>
#include <utility>

#include "gpu/backend/device.h"
#include "tests/testing/devices/fake_cuda/fake_cuda.h"

namespace stoker {
namespace {

using ::testing::ElementsAre;
using testing::FakeCuda;
using testing::FakeMachine;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::OpenFakeDevice;

Error WhyNot(const FakeMachine& machine, int ordinal = 0) {
  const FakeCuda cuda(machine);
  Result<std::shared_ptr<Device>> device = OpenFakeDevice(ordinal);
  EXPECT_FALSE(device.ok());
  EXPECT_EQ(cuda.Contexts(), 0);
  return device.ok() ? Error() : std::move(device).error();
}

TEST(OpenCudaTest, ErrorSaysThereIsNoDriver) {
  const Error error = WhyNot({.driver = 0});
  EXPECT_EQ(error.code, Code::kFailedPrecondition);
  EXPECT_EQ(error.cause, "no device cuda:0: there is no NVIDIA driver");
  EXPECT_EQ(error.advice,
            "stoker was built with CUDA 13.0: install a driver that has CUDA 13.0, which is driver "
            "580 or newer");
}

TEST(OpenCudaTest, ErrorSaysTheDriverIsTooOld) {
  const Error error = WhyNot({.driver = 12040});
  EXPECT_EQ(error.code, Code::kFailedPrecondition);
  EXPECT_EQ(error.cause, "no device cuda:0: the NVIDIA driver is too old: it has CUDA 12.4");
  EXPECT_THAT(error.advice, HasSubstr("CUDA 13.0, which is driver 580 or newer"));
}

TEST(OpenCudaTest, ErrorSaysThereIsNoDevice) {
  unsetenv("CUDA_VISIBLE_DEVICES");
  Error error = WhyNot({.devices = 0});
  EXPECT_EQ(error.code, Code::kFailedPrecondition);
  EXPECT_EQ(error.cause, "no device cuda:0: the NVIDIA driver finds no device");
  setenv("CUDA_VISIBLE_DEVICES", "-1", 1);
  error = WhyNot({.devices = 0});
  unsetenv("CUDA_VISIBLE_DEVICES");
  EXPECT_THAT(error.cause, HasSubstr("CUDA_VISIBLE_DEVICES=\"-1\" leaves none"));
}

TEST(OpenCudaTest, ErrorCountsTheDevices) {
  for (const int ordinal : {2, 99, -1}) {
    const Error error = WhyNot({.devices = 2}, ordinal);
    EXPECT_EQ(error.code, Code::kFailedPrecondition);
    EXPECT_EQ(error.cause, "no device cuda:" + std::to_string(ordinal) + ": CUDA has 2 devices");
    EXPECT_THAT(error.advice, HasSubstr("CUDA_VISIBLE_DEVICES"));
  }
}

TEST(OpenCudaTest, ErrorInAForkedChildAdvisesSpawn) {
  FakeCuda cuda;
  cuda.Inject({.call = "cudaGetDeviceCount", .error = cudaErrorInitializationError});
  const Result<std::shared_ptr<Device>> device = OpenFakeDevice();  // what CUDA says in one
  ASSERT_FALSE(device.ok());
  EXPECT_EQ(device.error().code, Code::kFailedPrecondition);
  EXPECT_THAT(device.error().advice, HasSubstr("start it by spawn"));
}

TEST(LookForCudaTest, DescribesDevicesWithoutMakingContexts) {
  const FakeCuda cuda({.devices = 2, .driver = 13010, .device_bytes = 1 << 20});
  const CudaReport report = testing::LookForFakeCuda();
  EXPECT_TRUE(report.built);
  EXPECT_EQ(report.runtime, 13000);
  EXPECT_EQ(report.min_driver, 13000);
  EXPECT_EQ(report.driver, 13010);
  EXPECT_EQ(report.why_not, "");
  ASSERT_EQ(report.devices.size(), 2u);
  EXPECT_EQ(report.devices[1].ordinal, 1);
  EXPECT_EQ(report.devices[1].name, "Fake GPU 1");
  EXPECT_EQ(report.devices[1].memory_bytes, 1u << 20);
  EXPECT_EQ(report.devices[1].capability, 90);
  EXPECT_EQ(report.devices[1].bus, "FFFF:F1:00.0");
  EXPECT_EQ(report.devices[1].link_gb_s, 0);
  EXPECT_EQ(report.devices[1].numa_node, -1);
  EXPECT_EQ(cuda.Contexts(), 0);
  EXPECT_THAT(cuda.Called(), ElementsAre("cudaDeviceGetPCIBusId", "cudaDriverGetVersion",
                                         "cudaGetDeviceCount", "cudaGetDeviceProperties"));
}

TEST(LookForCudaTest, FailedQueriesLeaveFieldsEmpty) {
  FakeCuda cuda;
  cuda.Inject({.call = "cudaGetDeviceProperties"});
  cuda.Inject({.call = "cudaDeviceGetPCIBusId"});
  const CudaReport report = testing::LookForFakeCuda();
  ASSERT_EQ(report.devices.size(), 1u);
  EXPECT_EQ(report.devices[0].name, "");
  EXPECT_EQ(report.devices[0].bus, "");
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST(LookForCudaTest, SaysWhyThereIsNoDevice) {
  const FakeCuda cuda({.driver = 12040});
  const CudaReport report = testing::LookForFakeCuda();
  EXPECT_TRUE(report.built);
  EXPECT_EQ(report.driver, 12040);
  EXPECT_THAT(report.devices, IsEmpty());
  EXPECT_EQ(report.why_not,
            "the NVIDIA driver is too old: it has CUDA 12.4. stoker was built with CUDA 13.0: "
            "install a driver that has CUDA 13.0, which is driver 580 or newer.");
}

// libstoker does not use the fake, whether it was built with CUDA or not.
TEST(LookForCudaTest, LibraryDoesNotCallTheFake) {
  const FakeCuda cuda;
  (void)LookForCuda();
  (void)Device::Open({DeviceName::Kind::kCuda, 0});
  EXPECT_THAT(cuda.Called(), IsEmpty());
}

}  // namespace
}  // namespace stoker
