// Runs the checks of kernels, and prints what each kernel has written.
#include <gtest/gtest.h>

#include <cstdio>

#include "tests/gpu/ptx/launches.h"

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  const int failed = RUN_ALL_TESTS();
  for (const auto& [kernel, totals] : stoker::testing::ptx::Launches()) {
    std::printf("%-40s %8llu launches, %12llu bytes written\n", kernel.c_str(),
                static_cast<unsigned long long>(totals.launches),
                static_cast<unsigned long long>(totals.stored));
  }
  return failed;
}
