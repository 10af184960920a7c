// Makes sources from other sources.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bindings/python/errors.h"
#include "bindings/python/held_input.h"
#include "bindings/python/module.h"
#include "bindings/python/waiting.h"
#include "core/result/try.h"
#include "engine/arrays/sized_by_headers.h"
#include "io/select/clips.h"
#include "io/select/combine.h"
#include "io/select/sample_order.h"
#include "io/select/sized.h"
#include "io/select/subset.h"
#include "io/select/weighted.h"
#include "io/source/source.h"

namespace stoker::python {

namespace py = pybind11;

namespace {

template <typename T>
using Numbers = py::array_t<T, py::array::c_style | py::array::forcecast>;

template <typename T>
std::span<const T> SpanOf(const Numbers<T>& numbers) {
  return {numbers.data(), static_cast<size_t>(numbers.size())};
}

// Calls `make`, which returns a source, without the GIL.
template <typename Make>
SourceHandle HandleOf(const Make& make) {
  Result<std::shared_ptr<const SampleSource>> source = [&] {
    const WithoutGil released;
    return make();
  }();
  return {.source = Value(std::move(source))};
}

SourceHandle MakeSubset(const SourceHandle& source, const Numbers<uint64_t>& indices) {
  return HandleOf([&] { return Subset(source.source, SpanOf(indices)); });
}

Numbers<uint64_t> SubsetIdsOf(const SourceHandle& source) {
  const std::vector<uint64_t> ids = SubsetIds(*source.source);
  return Numbers<uint64_t>(static_cast<py::ssize_t>(ids.size()), ids.data());
}

std::pair<SourceHandle, SourceHandle> MakeSplit(const SourceHandle& source, double fraction,
                                                uint64_t seed, const Numbers<int64_t>& classes) {
  SourceSplit split = Value([&] {
    const WithoutGil released;
    return Split(source.source, fraction, seed, SpanOf(classes));
  }());
  return {{.source = std::move(split.training)}, {.source = std::move(split.validation)}};
}

void CheckSplitOf(const SourceHandle& source, double fraction) {
  Check(CheckSplit(source.source.get(), fraction));
}

void CheckNoOrderOf(const std::string& what, const SourceHandle& source) {
  Check(CheckNoOrder(what, source.source.get()));
}

// `weights`: none if each sample comes once.
SourceHandle MakeCombined(const std::vector<SourceHandle>& handles,
                          const std::optional<Numbers<double>>& weights, uint64_t samples) {
  std::vector<std::shared_ptr<const SampleSource>> sources;
  sources.reserve(handles.size());
  for (const SourceHandle& handle : handles) sources.push_back(handle.source);
  return HandleOf([&] {
    return weights ? Combine(std::move(sources), SpanOf(*weights), samples)
                   : Combine(std::move(sources));
  });
}

SourceHandle MakeWeighted(const SourceHandle& source, const Numbers<double>& weights,
                          uint64_t samples) {
  return HandleOf([&] { return Weighted(source.source, SpanOf(weights), samples); });
}

// `classes`: empty if labels are in memory.
SourceHandle MakeBalanced(const SourceHandle& source, bool replacement, uint64_t samples,
                          const Numbers<int64_t>& classes) {
  return HandleOf([&] {
    return Balanced(source.source, {.replacement = replacement, .samples = samples},
                    SpanOf(classes));
  });
}

SourceHandle MakeRepeated(const SourceHandle& source, uint32_t times, uint64_t samples) {
  return HandleOf([&] { return Repeated(source.source, times, samples); });
}

SourceHandle MakeClips(const std::vector<std::pair<std::string, SourceHandle>>& handles,
                       const std::string& by, uint32_t frames, uint32_t stride, uint32_t step) {
  std::vector<Camera> cameras;
  for (const auto& [name, handle] : handles) cameras.push_back({name, handle.source});
  return HandleOf([&] {
    return Clips(std::move(cameras), {.by = by, .frames = frames, .stride = stride, .step = step});
  });
}

// `sizes`: (images, 2), height and width of each.
SourceHandle MakeSized(const SourceHandle& source, const Numbers<int32_t>& sizes) {
  std::vector<ImageSize> all(static_cast<size_t>(sizes.size()) / 2);
  for (size_t i = 0; i < all.size(); ++i) {
    all[i] = {.width = sizes.data()[2 * i + 1], .height = sizes.data()[2 * i]};
  }
  return HandleOf([&] { return Sized(source.source, all); });
}

SourceHandle MakeSizedByFacts(const SourceHandle& source, const Numbers<ImageFacts>& facts) {
  return HandleOf([&]() -> Result<std::shared_ptr<const SampleSource>> {
    TRY(CheckSized(source.source.get()));
    const std::span all = SpanOf(facts);
    if (all.size() == NumberImages(*source.source).Begin(source.source->size())) {
      return SizedByFacts(source.source, {all.begin(), all.end()}, "");
    }
    return Error{Code::kInvalidArgument, "the facts are those of other samples"};
  });
}

SourceHandle MakeSizedByHeaders(const SourceHandle& source, const std::string& index,
                                const RuntimeHandle& runtime) {
  KeptRuntime used;
  auto made = used.Run<std::shared_ptr<const SampleSource>>(runtime, [&](Runtime& given) {
    return SizedByHeaders(source.source, given, index, OnSignals());
  });
  return {.source = Value(std::move(made))};
}

}  // namespace

void AddDerivedSources(py::module_& module) {
  module.def("subset", &MakeSubset, py::arg("source"), py::arg("indices"));
  module.def("subset_ids", &SubsetIdsOf, py::arg("subset"));
  module.def("combine", &MakeCombined, py::arg("sources"), py::arg("weights"), py::arg("samples"));
  module.def("weighted", &MakeWeighted, py::arg("source"), py::arg("weights"), py::arg("samples"));
  module.def("balanced", &MakeBalanced, py::arg("source"), py::arg("replacement"),
             py::arg("samples"), py::arg("classes"));
  module.def("repeated", &MakeRepeated, py::arg("source"), py::arg("times"), py::arg("samples"));
  module.def("clips", &MakeClips, py::arg("cameras"), py::arg("by"), py::arg("frames"),
             py::arg("stride"), py::arg("step"));
  module.def("sized", &MakeSized, py::arg("source"), py::arg("sizes"));
  module.def("sized_by_facts", &MakeSizedByFacts, py::arg("source"), py::arg("facts"));
  module.def("sized_by_headers", &MakeSizedByHeaders, py::arg("source"), py::arg("index"),
             py::arg("runtime"));
  module.def("check_no_order", &CheckNoOrderOf, py::arg("what"), py::arg("source"));
  module.def("check_split", &CheckSplitOf, py::arg("source"), py::arg("fraction"));
  module.def("split", &MakeSplit, py::arg("source"), py::arg("fraction"), py::arg("seed"),
             py::arg("classes"));
}

}  // namespace stoker::python
