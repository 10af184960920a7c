// stoker._stoker.Looks and Trace: what stoker/_watching.py shows, and writes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "engine/pipeline/panel.h"
#include "engine/pipeline/shared_loader.h"
#include "engine/pipeline/trace_file.h"

namespace stoker::python {

// Looks at a loader from time to time. Does not keep it. With the GIL held; one thread at a time.
class Looks {
 public:
  explicit Looks(const std::shared_ptr<SharedLoader>& loader) : loader_(loader) {}

  // The panel and the line, empty at the first look; none: the loader has gone.
  std::optional<std::pair<std::string, std::string>> Look();

 private:
  const std::weak_ptr<SharedLoader> loader_;
  RecentStats recent_;
};

// Of the loader's Runtime. With the GIL held; one thread at a time.
class TraceHandle {
 public:
  TraceHandle(const SharedLoader& loader, std::string path, uint64_t memory);
  ~TraceHandle();
  TraceHandle(const TraceHandle&) = delete;
  TraceHandle& operator=(const TraceHandle&) = delete;

  // (events, dropped events, bytes)
  std::tuple<uint64_t, uint64_t, uint64_t> Stop();

 private:
  std::unique_ptr<TraceFile> file_;
};

}  // namespace stoker::python
