// Opens an io_uring, or returns an error that says why that is not possible.
#pragma once

#include <cstdint>

#include "core/result/result.h"

struct io_uring;  // liburing's

namespace stoker {

// Sets up `ring` for `reads` chains of kChainSteps operations, and a table of `reads` + `files`
// direct descriptors, after checking that the kernel supports them (Linux 5.19). On success the
// caller owns the ring (io_uring_queue_exit); on failure there is nothing to undo. Errors:
// Unimplemented (the kernel is too old or has no io_uring), PermissionDenied (seccomp or
// kernel.io_uring_disabled), ResourceExhausted (locked memory, descriptors).
Status SetUpRing(io_uring& ring, uint32_t reads, uint32_t files);

}  // namespace stoker
