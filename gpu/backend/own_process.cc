#include "gpu/backend/own_process.h"

#include <unistd.h>

namespace stoker {

OwnProcess::OwnProcess() : pid_(getpid()) {}

bool OwnProcess::here() const { return getpid() == pid_; }

Status OwnProcess::Check(const std::string& device) const {
  if (here()) return {};
  return Error{.code = Code::kFailedPrecondition,
               .cause = "the device " + device + " was opened by process " + std::to_string(pid_) +
                        " and does not work in its forked child " + std::to_string(getpid()),
               .advice = "Open it in the child, started by spawn instead of fork"};
}

}  // namespace stoker
