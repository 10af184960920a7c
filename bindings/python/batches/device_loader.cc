// stoker._stoker.DeviceLoader: a loader's batches as tensors.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings/c/loader_spec.h"
#include "bindings/c/registry.h"
#include "bindings/python/errors.h"
#include "bindings/python/iterator.h"
#include "bindings/python/loader.h"
#include "bindings/python/module.h"
#include "bindings/python/waiting.h"
#include "bindings/python/watching.h"
#include "core/result/try.h"
#include "engine/metrics/stats.h"
#include "gpu/backend/device.h"

namespace stoker::python {

namespace py = pybind11;

namespace {

// On the CPU the tensors share the memory of the loader's own batches. For other devices, another
// loader with the same options and the device makes them.
class DeviceLoaderHandle {
 public:
  // `key`: by which the registry finds this loader, if the device is not the CPU. `split`: batches
  // are in parts, also if there is one device. `decodes`: as in DeviceOptions. `spec`: the
  // other options, as ParseDeviceOptions takes them.
  DeviceLoaderHandle(const LoaderHandle& loader, const std::string& key,
                     const std::vector<std::string>& devices, bool split, bool decodes,
                     const std::string& spec)
      : columns_(loader.columns()),
        on_cpu_(!split && IsCpu(devices.at(0))),
        as_(split ? As::kParts : As::kTensors) {
    if (on_cpu_) {
      if (decodes) stoker::python::Check(NothingToDecodeOn());
      devices_ = {"cpu"};
      loader_ = loader.loader();
      return;
    }
    DeviceOptions options = Value(ParseDeviceOptions(spec));
    options.decodes = decodes;
    Result<std::shared_ptr<Loader>> opened = [&] {
      const WithoutGil released;
      return Open(loader, key, devices, std::move(options));
    }();
    loader_ = Value(std::move(opened));
    Loader* const made = loader_.get();
    OnShutdown(loader_, [made] { made->Stop(); });
  }
  ~DeviceLoaderHandle() { Release(CallsOf(loader_->options()), loader_); }
  DeviceLoaderHandle(const DeviceLoaderHandle&) = delete;
  DeviceLoaderHandle& operator=(const DeviceLoaderHandle&) = delete;

  std::unique_ptr<IteratorHandle> Iterate(std::optional<uint64_t> epoch, bool repeat) const {
    return std::make_unique<IteratorHandle>(loader_, loader_->Iterate(epoch, repeat), columns_, as_,
                                            /*counts=*/!epoch, closed_);
  }

  BackgroundTask Stop() const {
    stoker::python::Check(CheckNoCall("closed"));
    *closed_ = true;
    return BackgroundTask(
        [loader = on_cpu_ ? nullptr : loader_] {  // on the CPU the loader is the program's own
          if (loader != nullptr) loader->Stop();
        });
  }

  py::dict Stats() const;
  std::string Prometheus(const std::string& name) const {
    return PrometheusText(StatsNow(*loader_), name);
  }
  LoaderSnapshots NewSnapshots() const { return LoaderSnapshots(loader_); }
  const std::vector<std::string>& devices() const { return devices_; }

 private:
  static Status NothingToDecodeOn() {
    return Error{.code = Code::kInvalidArgument,
                 .cause = "decode is \"device\", and the device is the CPU",
                 .advice = "Leave decode out: the workers decode on the CPU"};
  }

  static bool IsCpu(const std::string& device) {
    return device == "cpu" || device == "cpu:0";  // PyTorch's names
  }

  Result<std::shared_ptr<Device>> OpenDevice(const std::string& text) {
    if (IsCpu(text)) {
      return Error{.code = Code::kInvalidArgument,
                   .cause = "batches are not split on the CPU, where nothing is copied",
                   .advice = "Slice them, or use \"host\" to try a program for several devices"};
    }
    Result<DeviceName> name = DeviceName::Parse(text);
    if (!name.ok()) {
      Error error = std::move(name).error();
      error.advice = "Use \"cpu\", \"cuda\", \"cuda:N\" with N from 0, or \"host\"";
      return error;
    }
    devices_.push_back(name->ToString());
    return Device::Open(*name);
  }

  Result<std::shared_ptr<Loader>> Open(const LoaderHandle& loader, const std::string& key,
                                       const std::vector<std::string>& names,
                                       DeviceOptions to_device) {
    for (const std::string& name : names) {
      ASSIGN_OR_RETURN(std::shared_ptr<Device> device, OpenDevice(name));
      to_device.devices.push_back(std::move(device));
    }
    loader.loader()->ReleaseIdle();  // most programs do not iterate over both
    LoaderOptions options = loader.loader()->options();
    options.to_device = std::move(to_device);
    return Registry::Get().FindOrOpen(key, [&](const std::shared_ptr<EpochCounter>&) {
      return Loader::Open(std::move(options), Registry::Get().Epochs(loader.key()));
    });
  }

  const size_t columns_;
  const bool on_cpu_;
  const As as_;
  std::vector<std::string> devices_;
  std::shared_ptr<Loader> loader_;
  const std::shared_ptr<Closed> closed_ = std::make_shared<Closed>(false);
};

py::dict DeviceLoaderHandle::Stats() const {
  const LoaderStats loader = StatsNow(*loader_);
  py::dict all = StatsOf(loader, /*of_device=*/false);
  if (on_cpu_) return all;
  const DeviceCopyStats stats = [this] {
    const WithoutGil released;
    return loader_->CopyStats();
  }();
  const auto seconds = [](uint64_t ns) { return static_cast<double>(ns) / 1e9; };
  for (const auto& [name, value] : StatsOf(loader, /*of_device=*/true)) all[name] = value;
  all["device"] = as_ == As::kParts ? py::object(py::tuple(py::cast(devices_)))
                                    : py::object(py::cast(devices_[0]));
  all["device_bytes"] = stats.device_bytes;
  all["copied_batches"] = stats.batches;
  all["copied_bytes"] = stats.copied_bytes;
  all["invalidated_captures"] = stats.invalidated_captures;
  all["ring_wait_seconds"] = seconds(stats.ring_wait_ns);
  all["host_wait_seconds"] = seconds(stats.host_wait_ns);
  all["copy_wait_seconds"] = seconds(stats.copy_wait_ns);
  return all;
}

}  // namespace

void AddDeviceLoader(py::module_& module) {
  py::class_<DeviceLoaderHandle>(module, "DeviceLoader")
      .def(py::init<const LoaderHandle&, const std::string&, const std::vector<std::string>&, bool,
                    bool, const std::string&>(),
           py::arg("loader"), py::arg("key"), py::arg("devices"), py::arg("split"),
           py::arg("decodes"), py::arg("spec"))
      .def("iterate", &DeviceLoaderHandle::Iterate, py::arg("epoch"), py::arg("repeat"))
      .def("stop", &DeviceLoaderHandle::Stop)
      .def("stats", &DeviceLoaderHandle::Stats)
      .def("prometheus", &DeviceLoaderHandle::Prometheus, py::arg("name"))
      .def("looks", &DeviceLoaderHandle::NewSnapshots)
      .def_property_readonly("devices", &DeviceLoaderHandle::devices);
}

}  // namespace stoker::python
