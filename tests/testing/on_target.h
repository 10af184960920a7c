// Runs tests once for each instruction set that this CPU has and the library was built for.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include <hwy/targets.h>

namespace stoker::testing {

// During its lifetime the library uses this instruction set.
class ScopedTarget {
 public:
  explicit ScopedTarget(int64_t target) { Use(target); }
  ~ScopedTarget() { Use(0); }
  ScopedTarget(const ScopedTarget&) = delete;
  ScopedTarget& operator=(const ScopedTarget&) = delete;

 private:
  static void Use(int64_t target) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
};

// A fixture; INSTANTIATE_TEST_SUITE_P(Cpu, Derived, EachTarget(), NameOfTarget).
class OnTarget : public ::testing::TestWithParam<int64_t> {
 private:
  const ScopedTarget target_{GetParam()};
};

inline auto EachTarget() { return ::testing::ValuesIn(hwy::SupportedAndGeneratedTargets()); }

inline std::string NameOfTarget(const ::testing::TestParamInfo<int64_t>& info) {
  return hwy::TargetName(info.param);
}

}  // namespace stoker::testing
