// ObjectFetcher: gets many ranges of objects at a time, by libcurl's multi interface.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/result/result.h"
#include "io/remote/object_fetch.h"
#include "io/remote/object_settings.h"

namespace stoker {

// A range arrives complete and is the requested one, or its fetch fails: status, Content- Range,
// lengths and the object's version are checked. Transient failures are tried again, after a wait
// that doubles: connections that are refused, reset or stall, bodies that are cut off, and the
// statuses 408, 429, 500, 502, 503 and 504 (no sooner than Retry-After says). Expired credentials
// are read again once.
//
// Used by a single thread at a time. Bodies go straight into the fetch's memory; libcurl takes
// about 100 KB in addition for each transfer.
class ObjectFetcher {
 public:
  // `transfers`: limit on fetches, 1 or more. Unavailable: libcurl is not installed.
  // InvalidArgument: a setting in the environment is wrong.
  static Result<std::unique_ptr<ObjectFetcher>> Make(uint32_t transfers);
  static Result<std::unique_ptr<ObjectFetcher>> Make(uint32_t transfers, ObjectSettings settings);
  ~ObjectFetcher();  // gives up the fetches that have not finished

  // Precondition: running() < capacity().
  void Start(ObjectFetch& fetch);

  // Moves finished fetches to `done` and returns their number. If there are none yet, it sleeps
  // until one has finished, for `wait_ms` at most.
  size_t Finish(std::span<ObjectFetch*> done, int wait_ms);

  // Ends this owner's fetches with Cancelled, except those that have finished.
  void GiveUp(const void* owner);

  size_t running() const;  // started and not yet returned by Finish
  size_t capacity() const;

 private:
  class Impl;
  explicit ObjectFetcher(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Fetches one object or range and waits for it.
Status FetchObject(ObjectFetcher& fetcher, ObjectFetch& fetch);

}  // namespace stoker
