#include "engine/tuning/tuner_decision.h"

#include <cstdarg>
#include <cstdio>

namespace stoker {
namespace {

[[gnu::format(printf, 1, 2)]] std::string Print(const char* format, ...) {
  char text[256];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  return text;
}

const char* NameOf(TunerDecision::What what) {
  switch (what) {
    case TunerDecision::What::kDepth:
      return "depth";
    case TunerDecision::What::kWorkers:
      return "workers";
    case TunerDecision::What::kReads:
      return "reads in flight";
  }
  return "";
}

std::string WhyOf(const TunerDecision& d) {
  const double waited = 100 * d.waited, expected = 100 * d.expected;
  switch (d.because) {
    case TunerDecision::Because::kWaits:
      return Print("the consumer waited %.1f%% of the time, and %.1f%% with %d", waited, expected,
                   d.to);
    case TunerDecision::Because::kNoWait:
      return Print("the consumer waited %.1f%% of the time, and no more with %d", waited, d.to);
    case TunerDecision::Because::kCannotKeepUp:
      return Print(
          "the consumer is faster whatever is chosen and waited %.1f%% of the time; more than %d "
          "bring no more",
          waited, d.to);
    case TunerDecision::Because::kMost:
      return Print("the consumer waited %.1f%% of the time; there may be no more than %d", waited,
                   d.to);
    case TunerDecision::Because::kTried:
      return Print(
          "tried for a while; the consumer waited %.1f%% of the time, and nobody knows what this "
          "does",
          waited);
    case TunerDecision::Because::kTakenBack:
      return "what was tried is over";
    case TunerDecision::Because::kLatency:
      return Print(
          "the consumer waited %.1f%% of the time, and a read takes %.2f ms: more at a "
          "time bring more",
          waited, d.read_latency_ms);
    case TunerDecision::Because::kSaturated:
      return Print("more at a time only make each of them slower, %.2f ms now", d.read_latency_ms);
    case TunerDecision::Because::kLimit:
      return "no more is allowed now: others need it, or memory is short";
  }
  return "";
}

}  // namespace

std::string TextOf(const TunerDecision& d) {
  std::string text = Print("%s %d → %d: ", NameOf(d.what), d.from, d.to) + WhyOf(d);
  if (d.because != TunerDecision::Because::kLimit && d.work_ms > 0) {
    text += Print(" (a batch takes %.3g ms of workers' time, a step %.3g ms)", d.work_ms, d.gap_ms);
  }
  return text;
}

}  // namespace stoker
