// Producer, continued: notices that the consumer waits while nothing moves, and says what has not
// ended. On the consumer's thread, whenever its wait wakes up to ask for interrupts.
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "core/hash.h"
#include "core/plural.h"
#include "core/secrets.h"
#include "core/stage_times.h"
#include "engine/loader/producer.h"

namespace stoker {

namespace {

constexpr size_t kFilesNamed = 3;

// The samples in one place: how many, and the first files.
struct PlacedSamples {
  uint64_t count = 0;
  std::vector<std::string> files;

  // "2 reads have not ended (a.jpg, b.jpg)", behind others.
  void AddTo(std::string& text, const std::string& one, const std::string& several) const {
    if (count == 0) return;
    if (!text.empty()) text += "; ";
    text += std::to_string(count) + " " + Plural(count, one.c_str(), several.c_str());
    std::string names;
    for (const std::string& file : files) names += (names.empty() ? " (" : ", ") + file;
    if (names.empty()) return;
    text += names + (count > files.size() ? ", ...)" : ")");
  }
};

}  // namespace

void Producer::LookForStall() {
  if (stalls_.patience_ns() == 0 || !stalls_.Look(NowNanoseconds(), StateOfWork())) return;
  const BatchName batch = position();
  std::string what = WorkNotEnded();
  runtime_.Log("batch " + std::to_string(batch.index) + " of epoch " + std::to_string(batch.epoch) +
               " is awaited, and nothing has moved for " +
               std::to_string(stalls_.patience_ns() / 1'000'000'000) + " s: " + what);
  stalls_.Tell(std::move(what));
}

// Allocates nothing: a wait is part of the steady state.
uint64_t Producer::StateOfWork() const {
  uint64_t state = maps_ != nullptr ? maps_->calls() : 0;
  for (uint32_t i = 0; i < samples_.count(); ++i) {
    const SamplesInFlight::Placed placed = samples_.PlaceOf(i);
    const std::array<uint64_t, 2> words{placed.sample, static_cast<uint64_t>(placed.place)};
    state = Hash64({reinterpret_cast<const uint8_t*>(words.data()), sizeof(words)}, state);
  }
  return state;
}

std::string Producer::WorkNotEnded() const {
  using Place = SamplesInFlight::Place;
  std::array<PlacedSamples, 5> placed;
  for (uint32_t i = 0; i < samples_.count(); ++i) {
    const SamplesInFlight::Placed sample = samples_.PlaceOf(i);
    PlacedSamples& those = placed[static_cast<size_t>(sample.place)];
    ++those.count;
    if (in_memory_ || sample.place == Place::kNone || those.files.size() == kFilesNamed) continue;
    std::string& file = those.files.emplace_back();
    options_.source->PathOf(options_.source->RangeOf(sample.sample).file, file);
    file = WithoutSecrets(file);
  }
  const auto at = [&](Place place) -> const PlacedSamples& {
    return placed[static_cast<size_t>(place)];
  };
  std::string text;
  if (has_calls_) {
    at(Place::kReading)
        .AddTo(text, "call of the source has not ended", "calls of the source have not ended");
  } else {
    at(Place::kReading).AddTo(text, "read has not ended", "reads have not ended");
  }
  const std::string function = map_ && maps_ == nullptr ? ", or in " + map_->name() : "";
  at(Place::kWorking)
      .AddTo(text, "sample is being decoded" + function, "samples are being decoded" + function);
  at(Place::kReady).AddTo(text, "sample waits for a worker", "samples wait for a worker");
  at(Place::kPostponed).AddTo(text, "sample waits for memory", "samples wait for memory");
  if (const int calls = maps_ != nullptr ? maps_->calling() : 0; calls > 0) {
    const PlacedSamples batches{.count = static_cast<uint64_t>(calls), .files = {}};
    batches.AddTo(text, "call of " + map_->name() + " has not ended",
                  "calls of " + map_->name() + " have not ended");
  }
  return text.empty() ? "nothing is in progress" : text;
}

}  // namespace stoker
