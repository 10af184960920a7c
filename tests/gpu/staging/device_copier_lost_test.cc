// A call succeeds, but the work that it gave to the stream fails later. The next call reports the
// error; nothing hangs, and every host batch is returned.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gpu/staging/device_ring.h"
#include "tests/gpu/staging/copier_setup.h"

namespace stoker {
namespace {

using ::stoker::testing::CopierSetupOptions;
using ::stoker::testing::FakeCuda;
using ::stoker::testing::FakeHostBatches;
using ::stoker::testing::OpenFakeDevice;
using ::stoker::testing::PlanOf;

// Returns the errors of three calls in a row, or none if 20 batches succeeded. A consumer whom Next
// does not tell of an error may learn of it from the batch.
std::vector<Error> Consume(DeviceCopier& copier, DeviceStream stream) {
  std::vector<Error> errors;
  bool told = false;
  for (int i = 0; errors.size() < 3 && (i < 20 || told || !errors.empty()); ++i) {
    Result<DeviceBatch> batch = copier.Next();
    if (!batch.ok()) {
      errors.push_back(batch.error());
    } else if (*batch) {
      told = !(i % 2 == 0 ? batch->WaitOn(stream) : batch->Wait()).ok() || told;
    }
  }
  return errors;
}

// Returns whether the work that was to fail was given.
bool IsLost(const std::string& call, int nth) {
  SCOPED_TRACE(call + " " + std::to_string(nth));
  FakeCuda cuda;
  const std::shared_ptr<Device> device = OpenFakeDevice().value();
  const DeviceStream stream = device->MakeStream().value();
  CopierSetupOptions options;
  options.has_deferred_ops = true;
  options.host.pinned_for = device;
  FakeHostBatches source(options.host);
  {
    DeviceCopier copier(DeviceCopier::MakeRing(device, PlanOf(options), options.buffers).value(),
                        source, {.across_epochs = true, .patience = {}});
    cuda.Inject({.call = call, .nth = nth, .error = cudaErrorIllegalAddress, .later = true});
    const std::vector<Error> errors = Consume(copier, stream);
    EXPECT_TRUE(std::all_of(errors.begin(), errors.end(),
                            [](const Error& e) { return e.code == Code::kUnavailable; }));
  }
  EXPECT_EQ(source.lent(), 0);
  device->Destroy(stream);
  for (const std::string& violation : cuda.Violations()) ADD_FAILURE() << violation;
  return cuda.Calls(call) >= nth;
}

TEST(DeviceCopierLostTest, ReportsFailureOfAnyWorkOnTheStream) {
  for (const char* call : {"cudaMemcpyAsync", "LaunchDeferredOps", "cudaEventRecord"}) {
    int nth = 1;
    while (IsLost(call, nth)) ++nth;
    EXPECT_GT(nth, 5) << call;
  }
}

}  // namespace
}  // namespace stoker
