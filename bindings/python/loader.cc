#include "bindings/python/loader.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bindings/c/loader_spec.h"
#include "bindings/c/registry.h"
#include "bindings/python/cursor.h"
#include "bindings/python/errors.h"
#include "bindings/python/iteration.h"
#include "bindings/python/module.h"
#include "bindings/python/waiting.h"
#include "engine/pipeline/check_options.h"
#include "engine/pipeline/cursor.h"
#include "engine/pipeline/shared_loader.h"
#include "io/sources/source.h"
#include "transforms/plan.h"

namespace stoker::python {

namespace py = pybind11;

LoaderHandle::LoaderHandle(std::string key, const std::string& spec, const SourceHandle& source,
                           const RuntimeHandle& runtime)
    : key_(std::move(key)), columns_(source.labels ? 2 : 1) {
  LoaderOptions options = Value([&] {
    const WithoutGil released;  // it may open a device
    return ParseLoaderSpec(spec, source.source);
  }());
  options.runtime = runtime.runtime;
  Result<std::shared_ptr<SharedLoader>> opened = [&] {
    const WithoutGil released;
    return Registry::Get().FindOrOpen(key_, [&](std::shared_ptr<EpochCounter> epochs) {
      return SharedLoader::Open(std::move(options), std::move(epochs));
    });
  }();
  shared_ = Value(std::move(opened));
}

LoaderHandle::~LoaderHandle() { LetGo(shared_); }

std::unique_ptr<CursorHandle> LoaderHandle::Iterate(std::optional<uint64_t> epoch,
                                                    bool repeat) const {
  return std::make_unique<CursorHandle>(
      shared_, OnTheCpu(shared_->Iterate(epoch, repeat), columns_, As::kArrays));
}

void LoaderHandle::Stop() const {
  const WithoutGil released;
  shared_->Stop();
}

LoaderHandle::AllElements LoaderHandle::Elements() const {
  AllElements elements;
  for (const ColumnSpec& column : std::span(shared_->columns()).first(columns_)) {
    elements.emplace_back(NameOf(column.dtype), column.row_shape);
  }
  return elements;
}

py::dict StatsOf(const SharedLoader& shared) {
  const LoaderStats stats = shared.Stats();
  const auto seconds = [](uint64_t ns) { return static_cast<double>(ns) / 1e9; };
  py::dict all;
  all["samples"] = stats.samples;
  all["batches"] = stats.batches;
  all["bytes_read"] = stats.bytes_read;
  all["wait_seconds"] = seconds(stats.wait_ns);
  all["decode_seconds"] = seconds(stats.stages.decode_ns);
  all["resize_seconds"] = seconds(stats.stages.resize_ns);
  all["augment_seconds"] = seconds(stats.stages.augment_ns);
  all["mix_seconds"] = seconds(stats.stages.mix_ns);
  all["read_cpu_seconds"] = seconds(stats.read_cpu_ns);
  all["indexed"] = stats.decoded.indexed;
  all["index_stale"] = stats.decoded.stale;
  all["index_contradicted"] = stats.decoded.contradicted;
  all["depth"] = stats.depth;
  all["lent_batches"] = stats.lent_batches;
  all["lent_bytes"] = stats.lent_bytes;
  all["batch_bytes"] = stats.slot_bytes;
  all["pinned_bytes"] = stats.pinned_bytes;
  all["memory_used"] = stats.memory_used;
  all["memory_peak"] = stats.memory_peak;
  all["memory_budget"] = stats.memory_budget;
  all["threads"] = stats.threads;
  all["threads_seen"] = stats.threads_seen;
  all["executor"] = stats.executor;
  all["reader"] = stats.reader;
  all["reader_reason"] = stats.reader_reason;
  all["plan"] = stats.plan;
  return all;
}

void AddLoader(py::module_& module) {
  py::class_<LoaderHandle>(module, "Loader")
      .def(py::init<const std::string&, const std::string&, const SourceHandle&,
                    const RuntimeHandle&>(),
           py::arg("key"), py::arg("spec"), py::arg("source"), py::arg("runtime"))
      .def("iterate", &LoaderHandle::Iterate, py::arg("epoch"), py::arg("repeat"))
      .def("stop", &LoaderHandle::Stop)
      .def("stats", [](const LoaderHandle& self) { return StatsOf(*self.shared()); })
      .def_property_readonly("elements", &LoaderHandle::Elements)
      .def_property_readonly(
          "batches_per_epoch",
          [](const LoaderHandle& self) { return self.shared()->batches_per_epoch(); })
      .def_property_readonly("last_rows",
                             [](const LoaderHandle& self) { return self.shared()->last_rows(); })
      .def_property(
          "next_epoch", [](const LoaderHandle& self) { return self.shared()->epochs().next(); },
          [](const LoaderHandle& self, uint64_t epoch) {
            self.shared()->epochs().set_next(epoch);
          });
}

}  // namespace stoker::python
