#include "engine/metrics/panel.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string_view>
#include <vector>

#include "engine/metrics/stats.h"

namespace stoker {

namespace {

uint64_t Since(uint64_t before, uint64_t now) { return now > before ? now - before : 0; }

long Rounded(double share) { return std::lround(100 * std::clamp(share, 0.0, 1.0)); }

std::string PercentText(double share) { return std::to_string(Rounded(share)) + "%"; }

// Rounds the whole and its parts to percent; the parts add up to the whole, which is at most 100.
// (Waits that began before the period, or of several consumers, can exceed the time.)
template <size_t n>
std::pair<long, std::array<long, n>> Percents(const std::array<double, n>& shares) {
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  const long all = Rounded(sum);
  std::array<long, n> percents{};
  if (sum <= 0) return {all, percents};
  // Rounding the running sum carries each part's rounding error over to the next one.
  double up_to = 0;
  long given = 0;
  for (size_t i = 0; i < n; ++i) {
    up_to += shares[i];
    percents[i] = std::lround(static_cast<double>(all) * up_to / sum) - given;
    given += percents[i];
  }
  return {all, percents};
}

// The change between two snapshots of the statistics.
class Period {
 public:
  Period(const LoaderStats& before, const LoaderStats& now, double seconds)
      : before_(before), now_(now), seconds_(std::max(seconds, 1e-9)) {}

  std::string Rate() const {
    const auto samples = static_cast<double>(Since(before_.samples, now_.samples));
    const double rate = samples / seconds_;
    if (rate > 0 && rate < 9.95) {
      const long tenths = std::lround(rate * 10);
      return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " samples/s";
    }
    return std::to_string(std::lround(rate)) + " samples/s";
  }

  // Returns the share of time that the consumer waited, and the causes, largest first.
  std::string DescribeWait() const {
    if (now_.batches == before_.batches) return "no batch was taken";
    const WaitCauses &from = before_.waited, &to = now_.waited;
    std::array<double, kNamedCauses.size()> shares{};
    std::ranges::transform(kNamedCauses, shares.begin(), [&](const NamedCause& cause) {
      return Share(from.*cause.ns, to.*cause.ns);
    });
    const auto [all, percents] = Percents(shares);
    std::array<std::pair<long, const char*>, kNamedCauses.size()> causes;
    for (size_t i = 0; i < causes.size(); ++i) causes[i] = {percents[i], kNamedCauses[i].name};
    std::ranges::stable_sort(causes,
                             [](const auto& a, const auto& b) { return a.first > b.first; });
    std::string text = "waited " + std::to_string(all) + "%";
    const char* before = ": ";
    for (const auto& [percent, name] : causes) {
      if (percent == 0) continue;
      text += std::exchange(before, ", ") + std::string(name) + " " + std::to_string(percent) + "%";
    }
    return text;
  }

  // Returns the busy share of each worker, 0 to 1.
  std::vector<double> BusyShares() const {
    std::vector<double> busy;
    for (size_t i = 0; i < now_.worker_busy_ns.size(); ++i) {
      const uint64_t from = i < before_.worker_busy_ns.size() ? before_.worker_busy_ns[i] : 0;
      busy.push_back(std::min(1.0, Share(from, now_.worker_busy_ns[i])));
    }
    return busy;
  }

  std::string Settings(const char* between) const {
    std::string text = "depth " + std::to_string(now_.depth);
    text += between + ("workers " + std::to_string(now_.workers));
    if (now_.reads != 0) text += between + ("reads " + std::to_string(now_.reads));
    const auto mebibytes = [](uint64_t bytes) { return std::to_string(bytes >> 20); };
    return text + between + "memory " + mebibytes(now_.memory_used) + " of " +
           mebibytes(now_.memory_budget) + " MiB";
  }

 private:
  double Share(uint64_t from_ns, uint64_t to_ns) const {
    return static_cast<double>(Since(from_ns, to_ns)) * 1e-9 / seconds_;
  }

  const LoaderStats& before_;
  const LoaderStats& now_;
  const double seconds_;
};

double MeanOf(const std::vector<double>& shares) {
  double sum = 0;
  for (double share : shares) sum += share;
  return sum / static_cast<double>(shares.size());
}

// Returns one bar character per share.
std::string Bars(const std::vector<double>& shares) {
  constexpr std::array<std::string_view, 9> kBars = {"·", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  std::string text;
  for (double share : shares) text += kBars[static_cast<size_t>(std::lround(share * 8))];
  return text;
}

}  // namespace

std::string Panel(const LoaderStats& before, const LoaderStats& now, double seconds) {
  const Period period(before, now, seconds);
  std::string text = period.Rate() + "   " + period.DescribeWait() + "\n";
  text += period.Settings("   ") + "\n";
  const std::vector<double> busy = period.BusyShares();
  if (!busy.empty()) text += "busy " + PercentText(MeanOf(busy)) + " " + Bars(busy) + "\n";
  if (!now.decisions.empty()) text += TextOf(now.decisions.back()) + "\n";
  if (const std::string advice = Advice(now); !advice.empty()) text += advice + "\n";
  return text;
}

std::string PanelLine(const LoaderStats& before, const LoaderStats& now, double seconds) {
  const Period period(before, now, seconds);
  std::string text = period.Rate() + ", " + period.DescribeWait() + ", " + period.Settings(", ");
  const std::vector<double> busy = period.BusyShares();
  if (!busy.empty()) text += ", busy " + PercentText(MeanOf(busy));
  return text;
}

void RecentStats::Add(LoaderStats now, uint64_t now_ns) {
  looks_.emplace_back(now_ns, std::move(now));
  while (looks_.size() > 2 && looks_[1].first + kWindowNs <= now_ns) looks_.pop_front();
}

double RecentStats::seconds() const {
  return static_cast<double>(looks_.back().first - looks_.front().first) * 1e-9;
}

std::string RecentStats::panel() const {
  if (looks_.size() < 2) return {};
  return Panel(looks_.front().second, looks_.back().second, seconds());
}

std::string RecentStats::line() const {
  if (looks_.size() < 2) return {};
  return PanelLine(looks_.front().second, looks_.back().second, seconds());
}

}  // namespace stoker
