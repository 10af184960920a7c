// What settings are best for the batches that a model remembers.
#pragma once

#include "engine/tuning/tuner.h"
#include "engine/tuning/tuner_model.h"

namespace stoker {

TunerSettings Most(const TunerSettings& a, const TunerSettings& b);
TunerSettings Least(const TunerSettings& a, const TunerSettings& b);

// A view: what it is made of outlives it, and holds at least one batch.
class TunerChoice {
 public:
  // `now`: the settings that the last batches were made with; `most`: what may be chosen.
  TunerChoice(const TunerModel& model, const TunerOptions& options, const TunerSettings& now,
              const TunerLimits& most)
      : model_(model), options_(options), now_(now), top_(Top(most)), best_(Time(top_)) {}

  // What a user has set stays as it is.
  static TunerSettings Within(const TunerSettings& wanted, const TunerSettings& fixed,
                              const TunerLimits& most);

  // Memory first, for a batch is much of it; then workers, for others could use the cores; then
  // reads. Each is chosen with the others as good as they may be, and some slack left for them.
  TunerSettings Choose() const;

  // Of the time, against the best that can be had.
  double Loss(const TunerSettings& settings) const { return Time(settings) / best_ - 1; }
  // More is a reason to change.
  double TooMuch() const { return 1.25 * kLoose * options_.wait_target; }

  // As much of everything as may be of use.
  const TunerSettings& top() const { return top_; }

 private:
  // Times wait_target that may be lost where it saves much memory.
  static constexpr double kLoose = 1.8;

  TunerSettings Top(const TunerLimits& most) const;
  double Time(const TunerSettings& settings) const { return model_.Replay(settings).total; }
  int LeastDepth(const TunerSettings& settings, double part) const;

  const TunerModel& model_;
  const TunerOptions& options_;
  const TunerSettings now_;
  const TunerSettings top_;
  const double best_;  // time
};

}  // namespace stoker
