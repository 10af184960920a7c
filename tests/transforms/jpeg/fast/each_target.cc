#include "tests/transforms/jpeg/fast/each_target.h"

#include "tests/testing/on_target.h"

namespace stoker::testing {

void ForEachTarget(const std::function<void()>& run) {
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    const ScopedTarget used(target);
    run();
  }
}

}  // namespace stoker::testing
