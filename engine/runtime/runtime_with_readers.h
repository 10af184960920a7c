// A Runtime whose reads a caller's own readers do: storage that is made up.
#pragma once

#include <memory>

#include "core/result.h"
#include "engine/runtime/read_service.h"
#include "engine/runtime/runtime.h"

namespace stoker {

// As Runtime::Create; `make_reader` makes a reader for each reader thread, in place of
// RuntimeOptions::reader.
Result<std::shared_ptr<Runtime>> RuntimeWithReaders(const RuntimeOptions& options,
                                                    ReadService::ReaderFactory make_reader);

}  // namespace stoker
