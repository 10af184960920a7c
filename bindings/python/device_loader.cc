// stoker._stoker.CpuLoader and DeviceLoader: a loader's batches as tensors.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "bindings/c/registry.h"
#include "bindings/python/cursor.h"
#include "bindings/python/errors.h"
#include "bindings/python/iteration.h"
#include "bindings/python/loader.h"
#include "bindings/python/module.h"
#include "bindings/python/waiting.h"
#include "bindings/python/watching.h"
#include "core/try.h"
#include "engine/device/shared_device_loader.h"
#include "engine/watching/prometheus.h"
#include "gpu/device.h"

namespace stoker::python {

namespace py = pybind11;

namespace {

// In the memory that they were made in: the same engines, and no other memory.
class CpuLoaderHandle {
 public:
  explicit CpuLoaderHandle(const LoaderHandle& loader)
      : shared_(loader.shared()), columns_(loader.columns()) {}
  ~CpuLoaderHandle() { LetGo(shared_); }

  std::unique_ptr<CursorHandle> Iterate(std::optional<uint64_t> epoch, bool repeat) const {
    return std::make_unique<CursorHandle>(
        shared_, OnTheCpu(shared_->Iterate(epoch, repeat), columns_, As::kTensors), closed_);
  }

  void Stop() const { *closed_ = true; }  // the loader itself goes on
  py::dict Stats() const { return StatsOf(shared_->Stats()); }
  std::string Prometheus(const std::string& name) const {
    return PrometheusText(shared_->Stats(), name);
  }
  Looks NewLooks() const { return Looks(shared_); }

 private:
  std::shared_ptr<SharedLoader> shared_;
  const size_t columns_;
  const std::shared_ptr<Closed> closed_ = std::make_shared<Closed>(false);
};

class DeviceLoaderHandle {
 public:
  DeviceLoaderHandle(const LoaderHandle& loader, const std::string& device, int buffers)
      : columns_(loader.columns()) {
    Result<std::shared_ptr<SharedDeviceLoader>> opened = [&] {
      const WithoutGil released;
      return Open(loader, device, buffers);
    }();
    shared_ = Value(std::move(opened));
    SharedDeviceLoader* const made = shared_.get();
    WhenLeaving(shared_, [made] { made->Stop(); });
  }
  ~DeviceLoaderHandle() { LetGo(shared_); }

  std::unique_ptr<CursorHandle> Iterate(std::optional<uint64_t> epoch, bool repeat) const {
    return std::make_unique<CursorHandle>(shared_->host().shared_from_this(),
                                          OnADevice(shared_->Iterate(epoch, repeat), columns_),
                                          closed_);
  }

  void Stop() const {
    *closed_ = true;
    const WithoutGil released;
    shared_->Stop();
  }

  py::dict Stats() const;
  std::string Prometheus(const std::string& name) const {
    return PrometheusText(shared_->Stats(), name);
  }
  Looks NewLooks() const { return Looks(shared_); }
  const std::string& device() const { return device_; }

 private:
  Result<std::shared_ptr<SharedDeviceLoader>> Open(const LoaderHandle& loader,
                                                   const std::string& text, int buffers) {
    Result<DeviceName> name = DeviceName::Parse(text);
    if (!name.ok()) {
      Error error = std::move(name).error();
      error.advice = "Use \"cpu\", \"cuda\", \"cuda:N\" with N from 0, or \"host\"";
      return error;
    }
    device_ = name->ToString();
    ASSIGN_OR_RETURN(std::shared_ptr<Device> device, Device::Open(*name));
    loader.shared()->LetIdleGo();  // in most programs nobody iterates over both
    return SharedDeviceLoader::Open(loader.shared()->options(),
                                    {.device = std::move(device), .buffers = buffers},
                                    Registry::Get().Epochs(loader.key()));
  }

  const size_t columns_;
  std::string device_;
  std::shared_ptr<SharedDeviceLoader> shared_;
  const std::shared_ptr<Closed> closed_ = std::make_shared<Closed>(false);
};

py::dict DeviceLoaderHandle::Stats() const {
  const StagerStats stats = shared_->StageStats();
  const auto seconds = [](uint64_t ns) { return static_cast<double>(ns) / 1e9; };
  py::dict all = StatsOf(shared_->Stats());
  all["device"] = device_;
  all["device_bytes"] = stats.device_bytes;
  all["copied_batches"] = stats.batches;
  all["copied_bytes"] = stats.copied_bytes;
  all["ring_wait_seconds"] = seconds(stats.ring_wait_ns);
  all["host_wait_seconds"] = seconds(stats.host_wait_ns);
  all["copy_wait_seconds"] = seconds(stats.copy_wait_ns);
  return all;
}

}  // namespace

void AddDeviceLoader(py::module_& module) {
  py::class_<CpuLoaderHandle>(module, "CpuLoader")
      .def(py::init<const LoaderHandle&>(), py::arg("loader"))
      .def("iterate", &CpuLoaderHandle::Iterate, py::arg("epoch"), py::arg("repeat"))
      .def("stop", &CpuLoaderHandle::Stop)
      .def("stats", &CpuLoaderHandle::Stats)
      .def("prometheus", &CpuLoaderHandle::Prometheus, py::arg("name"))
      .def("looks", &CpuLoaderHandle::NewLooks);
  py::class_<DeviceLoaderHandle>(module, "DeviceLoader")
      .def(py::init<const LoaderHandle&, const std::string&, int>(), py::arg("loader"),
           py::arg("device"), py::arg("buffers"))
      .def("iterate", &DeviceLoaderHandle::Iterate, py::arg("epoch"), py::arg("repeat"))
      .def("stop", &DeviceLoaderHandle::Stop)
      .def("stats", &DeviceLoaderHandle::Stats)
      .def("prometheus", &DeviceLoaderHandle::Prometheus, py::arg("name"))
      .def("looks", &DeviceLoaderHandle::NewLooks)
      .def_property_readonly("device", &DeviceLoaderHandle::device);
}

}  // namespace stoker::python
