#include "bindings/python/loader.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "bindings/c/loader_spec.h"
#include "bindings/c/registry.h"
#include "bindings/python/errors.h"
#include "bindings/python/iterator.h"
#include "bindings/python/map_function.h"
#include "bindings/python/module.h"
#include "bindings/python/waiting.h"
#include "bindings/python/watching.h"
#include "engine/loader/loader.h"
#include "engine/metrics/counters.h"
#include "engine/metrics/stats.h"
#include "engine/order/sampler.h"
#include "engine/production/check_options.h"
#include "engine/production/producer_parts.h"
#include "io/source/source.h"
#include "transforms/plan/plan.h"

namespace stoker::python {

namespace py = pybind11;

LoaderHandle::LoaderHandle(std::string key, const std::string& spec, const SourceHandle& source,
                           const RuntimeHandle& runtime, const py::object& map)
    : key_(std::move(key)) {
  std::shared_ptr<const MapFunction> function = MapFunctionOf(map, source.source);
  LoaderOptions options = Value([&] {
    const WithoutGil released;  // it may open a device
    return ParseLoaderSpec(spec, source.source, std::move(function));
  }());
  options.runtime = runtime.runtime;
  Result<std::shared_ptr<Loader>> opened = [&] {
    const WithoutGil released;
    return Registry::Get().FindOrOpen(key_, [&](std::shared_ptr<EpochCounter> epochs) {
      return Loader::Open(std::move(options), std::move(epochs));
    });
  }();
  loader_ = Value(std::move(opened));
  const MapFunction* const function_of = loader_->options().map.get();
  columns_ = PythonColumns(
      *source.source, function_of != nullptr ? function_of->columns() : std::vector<ColumnSpec>(),
      loader_->columns());
}

LoaderHandle::~LoaderHandle() { Release(CallsOf(loader_->options()), loader_); }

std::unique_ptr<IteratorHandle> LoaderHandle::Iterate(std::optional<uint64_t> epoch,
                                                      bool repeat) const {
  return std::make_unique<IteratorHandle>(loader_, loader_->Iterate(epoch, repeat), columns_,
                                          As::kArrays, /*counts=*/!epoch);
}

BackgroundTask LoaderHandle::Stop() const {
  Check(CheckNoCall("closed"));
  return BackgroundTask([loader = loader_] { loader->Stop(); });
}

LoaderHandle::AllElements LoaderHandle::Elements() const {
  AllElements elements;
  for (const ColumnSpec& column : std::span(loader_->columns()).first(columns_)) {
    elements.emplace_back(NameOf(column.dtype), column.row_shape);
    if (column.is_padded()) elements.back().second[0] = -1;
    if (!column.height_at) continue;
    const auto height = elements.back().second.begin() + static_cast<ptrdiff_t>(*column.height_at);
    std::fill_n(height, 2, -1);
  }
  return elements;
}

std::vector<std::string> LoaderHandle::Names() const {
  std::vector<std::string> names;
  for (const ColumnSpec& column : std::span(loader_->columns()).first(columns_)) {
    names.push_back(column.name);
  }
  return names;
}

std::vector<std::string> LoaderHandle::Ragged() const {
  std::vector<std::string> names;
  for (const ColumnSpec& column : std::span(loader_->columns()).first(columns_)) {
    if (column.is_ragged()) names.push_back(column.name);
  }
  return names;
}

namespace {

// Returns the ids of a batch's samples, without making the batch.
std::vector<uint64_t> SampleIdsOf(const LoaderHandle& self, uint64_t epoch, uint64_t index,
                                  uint64_t start) {
  const Sampler order = Value(Sampler::Make(SamplerOptionsOf(self.loader()->options())));
  const BatchName batch{epoch, index, start};
  if (index >= order.batches_from(start)) throw py::index_error("no such batch");
  std::vector<uint64_t> ids(order.RowsIn(batch));
  for (uint32_t row = 0; row < ids.size(); ++row) ids[row] = order.At(batch, row).sample;
  return ids;
}

// The number of rows of all batches of an epoch.
uint64_t RowsOfEpoch(const LoaderHandle& self, uint64_t epoch) {
  const Sampler order = Value(Sampler::Make(SamplerOptionsOf(self.loader()->options())));
  uint64_t rows = 0;
  for (uint64_t i = 0; i < order.batches_per_epoch(); ++i) rows += order.RowsIn({epoch, i});
  return rows;
}

BatchName StatePlace(const Loader& loader) {
  return loader.epochs().StatePlace(
      [&](const BatchName& next) { return next.index == loader.batches_from(next.start); });
}

// A counter as Python has it.
struct CounterReader {
  const CounterRow& row;

  py::object operator()(uint64_t* value) const { return Number(*value); }
  py::object operator()(uint64_t value) const { return Number(value); }
  py::object operator()(int* value) const { return py::int_(*value); }
  py::object operator()(std::string* text) const { return py::str(*text); }
  py::object operator()(const std::string& text) const { return py::str(text); }
  py::object operator()(double* value) const { return py::float_(*value); }
  py::object operator()(CoreTime* time) const { return py::float_(time->share()); }
  py::object operator()(std::vector<uint64_t>* values) const {
    py::list list;
    for (const uint64_t value : *values) list.append(Number(value));
    return list;
  }
  py::object operator()(std::vector<TunerDecision>* decisions) const {
    py::list list;
    for (const TunerDecision& decision : *decisions) list.append(TextOf(decision));
    return list;
  }
  py::object operator()(const NamedCounts& counts) const {
    py::dict dictionary;
    for (const auto& [name, count] : counts) dictionary[name] = Number(*count);
    return dictionary;
  }

 private:
  py::object Number(uint64_t value) const {
    if (row.unit != CounterUnit::kNanoseconds) return py::int_(value);
    return py::float_(static_cast<double>(value) / 1e9);
  }
};

}  // namespace

LoaderStats StatsNow(const Loader& loader) {
  const WithoutGil released;
  return loader.Stats();
}

py::dict StatsOf(const LoaderStats& given, bool of_device) {
  LoaderStats stats = given;  // the table gives access to what may be changed
  py::dict all;
  py::dict cache;
  for (const CounterRow& row : AllCounters()) {
    if (*row.name == 0 || row.of_device != of_device) continue;
    if (row.part != CounterPart::kCache) {
      all[row.name] = std::visit(CounterReader{row}, row.in(stats));
      continue;
    }
    cache[row.name] = std::visit(CounterReader{row}, row.in(stats));
    all["cache"] = stats.cache.place.empty() ? py::object(py::none()) : py::object(cache);
  }
  return all;
}

void AddLoader(py::module_& module) {
  module.def(
      "bad_policy",
      [](const std::string& text) { return Value(BadPolicy::Parse(text)).ToString(); },
      py::arg("text"));
  py::class_<LoaderHandle>(module, "Loader")
      .def(py::init<const std::string&, const std::string&, const SourceHandle&,
                    const RuntimeHandle&, const py::object&>(),
           py::arg("key"), py::arg("spec"), py::arg("source"), py::arg("runtime"),
           py::arg("map") = py::none())
      .def("iterate", &LoaderHandle::Iterate, py::arg("epoch"), py::arg("repeat"))
      .def("stop", &LoaderHandle::Stop)
      .def_property_readonly(
          "calls_of", [](const LoaderHandle& self) { return CallsOf(self.loader()->options()); })
      .def("rows_of_epoch", &RowsOfEpoch, py::arg("epoch"))
      .def("sample_ids", &SampleIdsOf, py::arg("epoch"), py::arg("batch"), py::arg("start"))
      .def("state_at",
           [](const LoaderHandle& self, uint64_t epoch, uint64_t batch, uint64_t start) {
             return self.loader()->StateAt({epoch, batch, start});
           })
      .def("place_of",
           [](const LoaderHandle& self, const std::string& state) {
             return TupleOf(Value(self.loader()->PlaceOf(state)));
           })
      .def("batches_from", [](const LoaderHandle& self,
                              uint64_t start) { return self.loader()->batches_from(start); })
      .def("restore",
           [](const LoaderHandle& self, uint64_t epoch, uint64_t batch, uint64_t start) {
             self.loader()->epochs().Restore({epoch, batch, start});
           })
      .def_property_readonly(
          "state_place",
          [](const LoaderHandle& self) { return TupleOf(StatePlace(*self.loader())); })
      .def_property_readonly(
          "next_place",
          [](const LoaderHandle& self) { return TupleOf(self.loader()->epochs().next_place()); })
      .def_property_readonly("restored",
                             [](const LoaderHandle& self) {
                               const std::optional<BatchName> place =
                                   self.loader()->epochs().restored();
                               return place ? py::object(TupleOf(*place)) : py::none();
                             })
      .def("stats",
           [](const LoaderHandle& self) {
             return StatsOf(StatsNow(*self.loader()), /*of_device=*/false);
           })
      .def(
          "prometheus",
          [](const LoaderHandle& self, const std::string& name) {
            return PrometheusText(StatsNow(*self.loader()), name);
          },
          py::arg("name"))
      .def("looks", [](const LoaderHandle& self) { return LoaderSnapshots(self.loader()); })
      .def(
          "trace",
          [](const LoaderHandle& self, const py::bytes& path, uint64_t memory) {
            return std::make_unique<TraceHandle>(*self.loader(), path, memory);
          },
          py::arg("path"), py::arg("memory"))
      .def_property_readonly("elements", &LoaderHandle::Elements)
      .def_property_readonly("names", &LoaderHandle::Names)
      .def_property_readonly("ragged", &LoaderHandle::Ragged)
      .def_property_readonly(
          "batches_per_epoch",
          [](const LoaderHandle& self) { return self.loader()->batches_per_epoch(); })
      .def_property_readonly(
          "most_rows", [](const LoaderHandle& self) { return MostRows(self.loader()->options()); })
      .def_property_readonly("last_rows",
                             [](const LoaderHandle& self) { return self.loader()->last_rows(); })
      .def_property(
          "next_epoch", [](const LoaderHandle& self) { return self.loader()->epochs().next(); },
          [](const LoaderHandle& self, uint64_t epoch) {
            self.loader()->epochs().set_next(epoch);
          });
}

}  // namespace stoker::python
