// stoker._stoker.Loader: a thin handle to a Loader.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings/python/iterator.h"
#include "bindings/python/module.h"
#include "bindings/python/waiting.h"
#include "engine/loader/loader.h"

namespace pybind11 {
class dict;
class object;
}  // namespace pybind11

namespace stoker::python {

// All functions need the GIL.
class LoaderHandle {
 public:
  LoaderHandle(std::string key, const std::string& spec, const SourceHandle& source,
               const RuntimeHandle& runtime, const pybind11::object& map);
  ~LoaderHandle();
  LoaderHandle(const LoaderHandle&) = delete;
  LoaderHandle& operator=(const LoaderHandle&) = delete;

  // Batches as NumPy arrays.
  std::unique_ptr<IteratorHandle> Iterate(std::optional<uint64_t> epoch, bool repeat) const;
  BackgroundTask Stop() const;

  // (dtype, row shape) of each array of a batch; of a ragged column the shape of one object.
  using AllElements = std::vector<std::pair<std::string, std::vector<int64_t>>>;
  AllElements Elements() const;
  std::vector<std::string> Names() const;
  // The names of ragged columns.
  std::vector<std::string> Ragged() const;  // of those arrays

  const std::string& key() const { return key_; }  // in the registry
  size_t columns() const { return columns_; }      // that Python sees
  const std::shared_ptr<Loader>& loader() const { return loader_; }

 private:
  const std::string key_;
  size_t columns_ = 0;
  std::shared_ptr<Loader> loader_;
};

// Reads the stats without the GIL, because calls that other threads wait for may be waiting for the
// GIL.
LoaderStats StatsNow(const Loader& loader);
// The counters that all loaders have, or those that only the loader of a device has.
pybind11::dict StatsOf(const LoaderStats& stats, bool of_device);

}  // namespace stoker::python
