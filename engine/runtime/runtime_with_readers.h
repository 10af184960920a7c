// Makes a Runtime that reads with the caller's own readers, to simulate storage.
#pragma once

#include <memory>

#include "core/result/result.h"
#include "engine/runtime/read_service.h"
#include "engine/runtime/runtime.h"

namespace stoker {

// Does what Runtime::Create does, but `make_reader` makes a reader for each reader thread, instead
// of RuntimeOptions::reader. `tune_workers`: the tuner chooses how many of the options.threads
// workers decode, as it does if no number of threads is given.
Result<std::shared_ptr<Runtime>> RuntimeWithReaders(const RuntimeOptions& options,
                                                    ReadService::ReaderFactory make_reader,
                                                    bool tune_workers = false);

}  // namespace stoker
