#include "engine/runtime/executor.h"

namespace stoker {

const char* WhyNotTbb() {
  return "the thread sanitizer would report races in TBB, which is not instrumented";
}

}  // namespace stoker
