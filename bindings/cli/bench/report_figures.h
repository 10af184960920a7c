// What follows from the numbers of a bench: rates, shares, and what one image costs.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "bindings/cli/bench/runner.h"

namespace stoker {

double PerImage(const BenchReport& report, double seconds);
double PerSecond(const BenchReport& report, double amount);
double ImagesPerSecond(const BenchReport& report);
double CpuShare(const BenchReport& report, double cpu_seconds);  // of all that the process used

// Whether the transforms antialias; none where nothing is resized.
std::optional<bool> Antialias(const BenchReport& report);
const char* FilterName(const BenchReport& report);

struct Stage {
  const char* name;
  double cpu_seconds;
  const char* meaning;
  bool optional = false;  // left out of the text where it takes no time
};
std::array<Stage, 6> Stages(const CpuSplit& cpu);

// Of the time of the run, from 0 to 1.
double WaitedShare(const LoaderStats& loader);              // the consumer waited
std::vector<double> BusyShares(const BenchReport& report);  // each worker had samples in hand

struct Cause {
  const char* name;
  uint64_t ns;
};
std::array<Cause, 4> Causes(const WaitCauses& waited);  // storage, decode, copy, other

double RateOf(uint64_t amount, uint64_t nanoseconds);  // a second

// Of the time between the first step's end and the last one's begin, and of the copies: at least,
// for a step may have waited for a batch that was not even made.
double IdleShare(const DeviceFigures& figures);
double HiddenShare(const DeviceFigures& figures);
double MeanStep(const DeviceFigures& figures);  // seconds

}  // namespace stoker
