#include "tests/testing/devices/fake_cuda/fake_cuda.h"

#include <algorithm>

#include "gpu/backend/open_device.h"
#include "tests/testing/devices/fake_cuda/fake_state.h"

namespace stoker::testing {

FakeCuda::FakeCuda(const FakeMachine& machine) : state_(std::make_shared<FakeState>(machine)) {
  FakeState::Install(state_);
}

FakeCuda::~FakeCuda() {
  FakeState::Install(nullptr);
  state_->EndStreams();
}

void FakeCuda::Inject(const FakeFault& fault) { state_->Inject(fault); }

void FakeCuda::BeginCapture(DeviceStream stream, cudaStreamCaptureMode mode) {
  state_->BeginCapture(static_cast<cudaStream_t>(stream.handle), mode);
}

bool FakeCuda::EndCapture(DeviceStream stream) {
  return state_->EndCapture(static_cast<cudaStream_t>(stream.handle));
}

DeviceStream FakeCuda::MakeBlockingStream() {
  cudaStream_t stream = nullptr;
  (void)state_->MakeStream(0, cudaStreamDefault, &stream);
  return {stream};
}

int FakeCuda::Calls(const std::string& function) const { return state_->Calls(function); }

int FakeCuda::Calls() const {
  int all = 0;
  for (const std::string& function : Called()) all += Calls(function);
  return all;
}

std::vector<std::string> FakeCuda::Called() const { return state_->Called(); }

int FakeCuda::Contexts() const {
  const std::vector<bool> contexts = state_->Contexts();
  return static_cast<int>(std::count(contexts.begin(), contexts.end(), true));
}

bool FakeCuda::HasContext(int device) const { return state_->Contexts()[device]; }

FakeHeld FakeCuda::Held() const { return state_->Held(); }

std::vector<std::string> FakeCuda::Violations() const { return state_->Violations(); }

Result<std::shared_ptr<Device>> OpenFakeDevice(int ordinal) { return OpenCudaDevice(ordinal); }

CudaReport LookForFakeCuda() { return LookForCuda(); }

}  // namespace stoker::testing
