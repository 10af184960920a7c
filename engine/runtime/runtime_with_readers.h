// Makes a Runtime that reads with the caller's own readers, to simulate storage.
#pragma once

#include <memory>

#include "core/result.h"
#include "engine/runtime/read_service.h"
#include "engine/runtime/runtime.h"

namespace stoker {

// Does what Runtime::Create does, but `make_reader` makes a reader for each reader thread, in place
// of RuntimeOptions::reader.
Result<std::shared_ptr<Runtime>> RuntimeWithReaders(const RuntimeOptions& options,
                                                    ReadService::ReaderFactory make_reader);

}  // namespace stoker
