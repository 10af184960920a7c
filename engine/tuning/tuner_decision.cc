#include "engine/tuning/tuner_decision.h"

#include <array>
#include <cstdio>

namespace stoker {
namespace {

template <typename... Values>
std::string Print(const char* format, Values... values) {
  std::array<char, 128> text;
  std::snprintf(text.data(), text.size(), format, values...);
  return text.data();
}

std::string WhyOf(const TunerDecision& d) {
  const std::string waited = Print("the consumer waited %.1f%% of the time", 100 * d.waited);
  switch (d.reason) {
    case TunerDecision::Reason::kWaits:
      return waited + Print(", and would wait %.1f%% with %d", 100 * d.expected, d.to);
    case TunerDecision::Reason::kNoWait:
      return waited + Print(", and would wait no longer with %d", d.to);
    case TunerDecision::Reason::kLimit:
      break;
  }
  return "no more is allowed now: other loaders need it, or memory is short";
}

}  // namespace

std::string TextOf(const TunerDecision& d) {
  static constexpr std::array kNames = {"depth", "workers", "reads in flight"};
  const char* const name = kNames[static_cast<size_t>(d.setting)];
  std::string text = Print("%s %d → %d: ", name, d.from, d.to) + WhyOf(d);
  if (d.reason == TunerDecision::Reason::kLimit || d.work_ms <= 0) return text;
  text += Print(" (a batch takes %.3g ms of workers' time, a step %.3g ms", d.work_ms, d.gap_ms);
  if (d.read_latency_ms > 0) text += Print(", a read %.3g ms", d.read_latency_ms);
  return text + ")";
}

}  // namespace stoker
