#include "engine/production/unfinished_work.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <vector>

#include "core/hash/hash.h"
#include "core/result/plural.h"
#include "core/result/secrets.h"

namespace stoker {

namespace {

constexpr size_t kFilesNamed = 3;

// Appends a count like "2 reads have not ended" to the text. Returns whether the count is above 0.
bool AddCount(std::string& text, uint64_t count, const std::string& one,
              const std::string& several) {
  if (count == 0) return false;
  if (!text.empty()) text += "; ";
  text += std::to_string(count) + " " + Plural(count, one.c_str(), several.c_str());
  return true;
}

std::string Seconds(uint64_t ns) {
  std::array<char, 32> text{};
  (void)std::snprintf(text.data(), text.size(), "%g s", static_cast<double>(ns) / 1e9);
  return text.data();
}

}  // namespace

std::string AwaitedInVain(BatchName batch, uint64_t patience_ns) {
  return "batch " + std::to_string(batch.index) + " of epoch " + std::to_string(batch.epoch) +
         " is awaited, and nothing has moved for " + Seconds(patience_ns) + ": ";
}

uint64_t UnfinishedWork::State() const {
  uint64_t state = maps_ != nullptr ? maps_->calls() : 0;
  for (uint32_t i = 0; i < samples_.count(); ++i) {
    const SamplesInFlight::Snapshot snapshot = samples_.SnapshotOf(i);
    const std::array<uint64_t, 4> words{snapshot.sample, snapshot.unread, snapshot.row,
                                        static_cast<uint64_t>(snapshot.state)};
    state = Hash64({reinterpret_cast<const uint8_t*>(words.data()), sizeof(words)}, state);
  }
  return state;
}

// Names the files of the samples that are needed first: the others may only wait for their turn
// after them.
std::string UnfinishedWork::FilesOf(std::vector<SamplesInFlight::Snapshot> samples) const {
  if (source_.in_memory()) return "";
  std::ranges::sort(samples, {}, &SamplesInFlight::Snapshot::row);
  std::string names;
  for (size_t i = 0; i < std::min(samples.size(), kFilesNamed); ++i) {
    std::string file;
    const uint64_t id = samples[i].sample;
    const uint32_t piece = samples[i].piece;
    source_.PathOf(source_.RangeOfAny(id, piece).file, file);
    names += (i == 0 ? " (" : ", ") + WithoutSecrets(file);
  }
  return names + (samples.size() > kFilesNamed ? ", ...)" : ")");
}

std::string UnfinishedWork::Describe() const {
  using State = SamplesInFlight::State;
  std::array<std::vector<SamplesInFlight::Snapshot>, 5> by_state;
  for (uint32_t i = 0; i < samples_.count(); ++i) {
    const SamplesInFlight::Snapshot sample = samples_.SnapshotOf(i);
    by_state[static_cast<size_t>(sample.state)].push_back(sample);
  }
  std::string text;
  const auto add = [&](State state, const std::string& one, const std::string& several) {
    const auto& those = by_state[static_cast<size_t>(state)];
    if (AddCount(text, those.size(), one, several)) text += FilesOf(those);
  };
  if (source_.calls() != 0) {
    add(State::kReading, "call of the source has not ended", "calls of the source have not ended");
  } else {
    add(State::kReading, "read has not ended", "reads have not ended");
  }
  const std::string function = map_ != nullptr && maps_ == nullptr ? ", or in " + map_->name() : "";
  add(State::kWorking, "sample is being decoded" + function,
      "samples are being decoded" + function);
  add(State::kReady, "sample waits for a worker", "samples wait for a worker");
  add(State::kPostponed, "sample waits for memory", "samples wait for memory");
  if (maps_ != nullptr) {
    AddCount(text, static_cast<uint64_t>(maps_->calling()),
             "call of " + map_->name() + " has not ended",
             "calls of " + map_->name() + " have not ended");
  }
  if (!text.empty()) return text;
  return "none of its samples has begun; other loaders of the Runtime may keep the reader threads, "
         "or the memory";
}

}  // namespace stoker
