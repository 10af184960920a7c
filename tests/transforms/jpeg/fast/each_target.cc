#include "tests/transforms/jpeg/fast/each_target.h"

#include <gtest/gtest.h>
#define HWY_WANT_AVX3_DL 1  // as the library is built
#include <hwy/targets.h>

namespace stoker::testing {

void ForEachTarget(const std::function<void()>& run) {
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    run();
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
}

}  // namespace stoker::testing
