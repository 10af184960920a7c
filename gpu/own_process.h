// A device belongs to the process that opened it: neither a driver nor threads go along in a fork.
#pragma once

#include <string>

#include "core/result.h"

namespace stoker {

// Of the process that makes it.
class OwnProcess {
 public:
  OwnProcess();

  bool here() const;  // no fork lies between
  // FailedPrecondition in a forked child; `device` is named in it.
  Status Check(const std::string& device) const;

 private:
  int pid_;
};

}  // namespace stoker
