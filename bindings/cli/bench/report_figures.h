// Figures derived from a bench's measurements: rates, shares, and the cost of one image.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bindings/cli/bench/runner.h"

namespace stoker {

// The advice, with the rate of this report.
std::string AdviceOf(const BenchReport& report);

double PerImage(const BenchReport& report, double seconds);
double PerSecond(const BenchReport& report, double amount);
double ImagesPerSecond(const BenchReport& report);
double PatchesPerSecond(const BenchReport& report);
double CpuShare(const BenchReport& report, double cpu_seconds);  // of the process' CPU time

// Whether the transforms antialias; nullopt if nothing is resized.
std::optional<bool> Antialias(const BenchReport& report);
std::string FilterName(const BenchReport& report);

struct Stage {
  const char* name;
  double cpu_seconds;
  const char* meaning;
  bool optional = false;  // omitted from the text if it takes no time
};
std::array<Stage, 6> Stages(const CpuSplit& cpu);

// Shares of the run's time, from 0 to 1.
double WaitedShare(const LoaderStats& loader);              // the consumer waited
std::vector<double> BusyShares(const BenchReport& report);  // each worker had samples

struct Cause {
  const char* name;
  uint64_t ns;
};
std::array<Cause, kNamedCauses.size()> Causes(const WaitCauses& waited);  // in their order

double RateOf(uint64_t amount, uint64_t nanoseconds);  // per second

// Shares of the time from the first step's end to the last one's start, and of the copies' time.
// They are lower bounds, because a step may have waited for a batch that was not even made.
double IdleShare(const DeviceFigures& figures);
double HiddenShare(const DeviceFigures& figures);
double MeanStep(const DeviceFigures& figures);  // seconds

}  // namespace stoker
