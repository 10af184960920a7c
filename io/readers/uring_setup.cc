#include "io/readers/uring_setup.h"

#include <liburing.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "io/readers/uring_chain.h"

namespace stoker {

namespace {

constexpr char kUsePread[] = "Reader pread works without io_uring";

struct Need {
  uint32_t what;
  const char* name;
  const char* since;
};

constexpr Need kOperations[] = {
    {IORING_OP_OPENAT, "openat", "Linux 5.6"},
    {IORING_OP_READ, "read", "Linux 5.6"},
    {IORING_OP_CLOSE, "close", "Linux 5.6"},
    {IORING_OP_ASYNC_CANCEL, "async_cancel", "Linux 5.5"},
};

constexpr Need kFeatures[] = {
    {IORING_FEAT_RW_CUR_POS, "reads at the file's own position", "Linux 5.6"},
    {IORING_FEAT_EXT_ARG, "waits with a time limit", "Linux 5.11"},
    {IORING_FEAT_LINKED_FILE, "links that use what an earlier one opened", "Linux 5.17"},
};

Error LacksFeature(const char* what, const char* since) {
  return {.code = Code::kUnimplemented,
          .cause = std::string("this kernel's io_uring lacks ") + what + " (" + since + ")",
          .advice = kUsePread};
}

std::string Words(int error_number) { return std::generic_category().message(error_number); }

Error SetupError(int error_number) {
  switch (error_number) {
    case ENOSYS:
      return {.code = Code::kUnimplemented,
              .cause = "there is no io_uring here (ENOSYS: an old kernel, or seccomp)",
              .advice = kUsePread};
    case EPERM:
    case EACCES:
      return {.code = Code::kPermissionDenied,
              .cause = "io_uring is not allowed here (EPERM: seccomp or kernel.io_uring_disabled)",
              .advice = kUsePread};
    case ENOMEM:
      return {.code = Code::kResourceExhausted,
              .cause = "no memory may be locked for an io_uring (ENOMEM)",
              .advice = "Raise the limit (ulimit -l) or lower the number of reads in flight"};
    case EINVAL:
      return LacksFeature("the flags of its set-up", "Linux 5.19");
    default:
      return {.code = Code::kUnavailable,
              .cause = "io_uring cannot be set up: " + Words(error_number),
              .advice = kUsePread};
  }
}

// COOP_TASKRUN: completions do not interrupt this thread but are processed when it enters the
// kernel; TASKRUN_FLAG says when that is worthwhile. DEFER_TASKRUN is not used: it would advance a
// chain's links only inside a wait, so that a warm batch needs several calls instead of one, and
// cold reads were no faster.
int OpenRing(io_uring& ring, uint32_t reads) {
  constexpr unsigned kFlags =
      IORING_SETUP_SUBMIT_ALL | IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG;  // 5.19
  // The completion queue is twice as long, so that it has room for a chain's steps and their
  // cancellation.
  const int e =
      io_uring_queue_init(reads * kChainSteps, &ring, kFlags | IORING_SETUP_SINGLE_ISSUER);
  if (e != -EINVAL) return e;  // SINGLE_ISSUER is Linux 6.0
  return io_uring_queue_init(reads * kChainSteps, &ring, kFlags);
}

Status CheckAndRegister(io_uring& ring, uint32_t reads, uint32_t files) {
  for (const Need& need : kFeatures) {
    if ((ring.features & need.what) == 0) return LacksFeature(need.name, need.since);
  }
  io_uring_probe* probe = io_uring_get_probe_ring(&ring);
  if (probe == nullptr) return LacksFeature("the list of its operations", "Linux 5.6");
  const Need* missing = nullptr;
  for (const Need& need : kOperations) {
    if (!io_uring_opcode_supported(probe, static_cast<int>(need.what))) missing = &need;
  }
  io_uring_free_probe(probe);
  if (missing != nullptr) return LacksFeature(missing->name, missing->since);

  const int e = io_uring_register_files_sparse(&ring, reads + files);
  if (e == -EMFILE) {
    return Error{.code = Code::kResourceExhausted,
                 .cause = "the limit of open files is below the " + std::to_string(reads) +
                          " reads in flight",
                 .advice = "Raise the limit (ulimit -n) or lower the number of reads in flight"};
  }
  if (e == -EINVAL) return LacksFeature("sparse tables of direct descriptors", "Linux 5.19");
  if (e < 0) return SetupError(-e);
  return {};
}

}  // namespace

Status SetUpRing(io_uring& ring, uint32_t reads, uint32_t files) {
  if (const int e = OpenRing(ring, reads); e < 0) return SetupError(-e);
  Status ready = CheckAndRegister(ring, reads, files);
  if (!ready.ok()) io_uring_queue_exit(&ring);
  return ready;
}

}  // namespace stoker
