// OwnProcess: the process that opened a device. Neither a driver nor threads survive a fork.
#pragma once

#include <string>

#include "core/result/result.h"

namespace stoker {

// The process in which the object was constructed.
class OwnProcess {
 public:
  OwnProcess();

  bool here() const;  // true if there was no fork since
  // FailedPrecondition in a forked child; the error names `device`.
  Status Check(const std::string& device) const;

 private:
  int pid_;
};

}  // namespace stoker
