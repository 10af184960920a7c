#include "bindings/cli/bench/report_figures.h"

#include <algorithm>
#include <variant>

#include "engine/metrics/advice.h"

namespace stoker {

namespace {

struct Filter {
  bool antialias;
  Interpolation interpolation;
};

// Returns nullopt if the images, or those of the first view, are not resized.
std::optional<Filter> FilterOf(const BenchReport& report) {
  const LoaderOptions& loader = report.options.loader;
  for (const Transform& transform : loader.views.empty() ? loader.transforms : loader.views[0]) {
    if (const auto* resize = std::get_if<Resize>(&transform)) {
      return Filter{resize->antialias, resize->interpolation};
    }
    if (const auto* crop = std::get_if<RandomResizedCrop>(&transform)) {
      return Filter{crop->antialias, crop->interpolation};
    }
  }
  return std::nullopt;
}

}  // namespace

std::string AdviceOf(const BenchReport& report) {
  return Advice(report.loader, ImagesPerSecond(report));
}

double PerImage(const BenchReport& report, double seconds) {
  return report.images == 0 ? 0 : seconds / static_cast<double>(report.images);
}

double PerSecond(const BenchReport& report, double amount) {
  return report.seconds <= 0 ? 0 : amount / report.seconds;
}

double ImagesPerSecond(const BenchReport& report) {
  return PerSecond(report, static_cast<double>(report.images));
}

double PatchesPerSecond(const BenchReport& report) {
  return PerSecond(report, static_cast<double>(report.patches));
}

double CpuShare(const BenchReport& report, double cpu_seconds) {
  return report.cpu_seconds <= 0 ? 0 : cpu_seconds / report.cpu_seconds;
}

std::optional<bool> Antialias(const BenchReport& report) {
  const std::optional<Filter> filter = FilterOf(report);
  if (!filter) return std::nullopt;
  return filter->antialias;
}

std::string FilterName(const BenchReport& report) {
  const std::optional<Filter> filter = FilterOf(report);
  if (!filter) return "none";
  std::string name = NameOf(filter->interpolation);
  if (filter->interpolation == Interpolation::kNearest) return name;
  return (filter->antialias ? "antialiased " : "plain ") + name;
}

std::array<Stage, 6> Stages(const CpuSplit& cpu) {
  return {{{"read", cpu.read, "files into memory"},
           {"decode", cpu.decode, "bytes to pixels"},
           {"resize", cpu.resize, "resample, flip, convert, write the row"},
           {"augment", cpu.augment, "what is not fused: colour, blur, policies, erasing", true},
           {"mix", cpu.mix, "MixUp and CutMix", true},
           {"rest", cpu.rest, "everything else"}}};
}

double WaitedShare(const LoaderStats& loader) {
  const double waited = static_cast<double>(loader.wait_ns);
  const double all = waited + static_cast<double>(loader.consumer_ns);
  return all == 0 ? 0 : waited / all;
}

std::vector<double> BusyShares(const BenchReport& report) {
  std::vector<double> shares;
  shares.reserve(report.loader.worker_busy_ns.size());
  for (const uint64_t ns : report.loader.worker_busy_ns) {
    shares.push_back(std::min(1.0, PerSecond(report, static_cast<double>(ns) * 1e-9)));
  }
  return shares;
}

std::array<Cause, kNamedCauses.size()> Causes(const WaitCauses& waited) {
  std::array<Cause, kNamedCauses.size()> causes;
  std::ranges::transform(kNamedCauses, causes.begin(), [&](const NamedCause& cause) {
    return Cause{cause.name, waited.*cause.ns};
  });
  return causes;
}

double RateOf(uint64_t amount, uint64_t nanoseconds) {
  return nanoseconds == 0 ? 0
                          : static_cast<double>(amount) * 1e9 / static_cast<double>(nanoseconds);
}

double IdleShare(const DeviceFigures& figures) {
  const double idle = static_cast<double>(figures.steps.idle_ns);
  return idle == 0 ? 0 : idle / (idle + static_cast<double>(figures.steps.step_ns));
}
double HiddenShare(const DeviceFigures& figures) {
  if (figures.copies.copy_ns == 0) return 0;
  return std::max(0.0, 1 - static_cast<double>(figures.steps.idle_ns) /
                               static_cast<double>(figures.copies.copy_ns));
}
double MeanStep(const DeviceFigures& figures) {
  return figures.steps.steps == 0 ? 0
                                  : static_cast<double>(figures.steps.step_ns) * 1e-9 /
                                        static_cast<double>(figures.steps.steps);
}

}  // namespace stoker
