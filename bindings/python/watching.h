// LoaderSnapshots and TraceHandle (stoker._stoker.Looks and Trace): the panel and the trace for
// stoker/_watching.py.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "engine/loader/loader.h"
#include "engine/metrics/panel.h"
#include "engine/metrics/stats.h"
#include "engine/metrics/trace_file.h"

namespace stoker::python {

// Takes snapshots of a loader, without keeping it alive. With the GIL held; one thread at a time.
class LoaderSnapshots {
 public:
  explicit LoaderSnapshots(std::weak_ptr<const Loader> loader) : loader_(std::move(loader)) {}

  // Returns the panel and the line, empty at the first call; nullopt means the loader no longer
  // exists.
  std::optional<std::pair<std::string, std::string>> Take();

 private:
  const std::weak_ptr<const Loader> loader_;
  RecentStats recent_;
};

// The trace of a loader's Runtime. With the GIL held; one thread at a time.
class TraceHandle {
 public:
  TraceHandle(const Loader& loader, std::string path, uint64_t memory);
  ~TraceHandle();
  TraceHandle(const TraceHandle&) = delete;
  TraceHandle& operator=(const TraceHandle&) = delete;

  // Returns (events, dropped events, bytes).
  std::tuple<uint64_t, uint64_t, uint64_t> Stop();

 private:
  std::unique_ptr<TraceFile> file_;
};

}  // namespace stoker::python
