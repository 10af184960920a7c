#include "bench/tuner_sim/workload.h"

#include <algorithm>
#include <cmath>

#include "bench/tuner_sim/draws.h"

namespace stoker::tuner_sim {
namespace {

constexpr double kMicrosecond = 1e3;
constexpr double kMillisecond = 1e6;
constexpr double kSecond = 1e9;
constexpr int kShortestPhase = 1300;  // batches: 20 times the deepest prefetch

enum class Work : uint8_t { kConstant, kExponential, kLogNormal, kPareto, kHuge };
enum class Storage : uint8_t { kMemory, kCached, kSsd, kNetwork, kDisk };
enum class StorageTrouble : uint8_t { kNone, kSlower, kStalls };
enum class Consumer : uint8_t { kConstant, kNoisy, kBursts, kPhases, kPauses };

const char* const kWorkNames[] = {"constant", "exponential", "lognormal", "pareto", "huge"};
const char* const kStorageNames[] = {"memory", "cached", "ssd", "network", "disk"};
const char* const kTroubleNames[] = {"", "+slower", "+stalls"};
const char* const kConsumerNames[] = {"constant", "noisy", "bursts", "phases", "pauses"};

struct Recipe {
  Work work;
  Storage storage;
  StorageTrouble trouble;
  Consumer consumer;
  bool neighbour;  // takes cores for a third of the time
  double demand;   // consumer's time of a batch over what producing one takes at best
};

Recipe DrawRecipe(Draws& draws) {
  Recipe recipe{};
  recipe.work = static_cast<Work>(draws.Below(5));
  recipe.storage = static_cast<Storage>(draws.Below(5));
  const double trouble = draws.Uniform();
  if (recipe.storage >= Storage::kSsd && trouble < 0.3) {
    recipe.trouble = trouble < 0.15 ? StorageTrouble::kSlower : StorageTrouble::kStalls;
  }
  recipe.consumer = static_cast<Consumer>(draws.Below(5));
  recipe.neighbour = draws.Chance(0.15);
  recipe.demand = draws.LogBetween(0.3, 8);
  return recipe;
}

void DrawWork(Draws& draws, Work kind, double mean, Workload& workload) {
  const double sigma = draws.Between(0.2, 1);
  const double alpha = draws.Between(1.8, 3);
  const double huge = draws.LogBetween(10, 100);
  for (float& work : workload.work) {
    double of_mean = 1;
    switch (kind) {
      case Work::kConstant:
        break;
      case Work::kExponential:
        of_mean = draws.Exponential();
        break;
      case Work::kLogNormal:
        of_mean = draws.LogNormal(sigma);
        break;
      case Work::kPareto:
        of_mean = std::min(draws.Pareto(alpha), 500.0);
        break;
      case Work::kHuge:
        of_mean = draws.Chance(0.003) ? huge : draws.LogNormal(0.3);
        break;
    }
    work = static_cast<float>(mean * of_mean);
  }
}

// Draws the storage. Returns its best rate, in samples per nanosecond.
double DrawStorage(Draws& draws, Storage kind, Workload& workload) {
  double service = 0, sigma = 0, delay = 0, best = 0;
  switch (kind) {
    case Storage::kMemory:
      return 1e9;
    case Storage::kCached:
      workload.channels = 2, service = draws.Between(8, 14) * kMicrosecond, sigma = 0.2;
      break;
    case Storage::kSsd:
      workload.channels = 1 << (2 + draws.Below(4));
      service = draws.LogBetween(80, 300) * kMicrosecond, sigma = draws.Between(0.1, 0.6);
      workload.thrash = draws.Chance(0.3) ? draws.Between(0.01, 0.05) : 0;
      break;
    case Storage::kNetwork:
      workload.channels = 8 << draws.Below(4);
      service = draws.LogBetween(100, 1000) * kMicrosecond, sigma = draws.Between(0.1, 0.8);
      delay = draws.LogBetween(1, 20) * kMillisecond;
      break;
    case Storage::kDisk:
      workload.channels = 1, service = draws.Between(2, 8) * kMillisecond, sigma = 0.3;
      workload.elevator = draws.Between(0.1, 0.4);
      break;
  }
  workload.service.resize(workload.samples());
  for (float& s : workload.service) s = static_cast<float>(service * draws.LogNormal(sigma));
  if (delay != 0) {
    const double spread = draws.Between(0.05, 0.8);
    workload.delay.resize(workload.samples());
    for (float& d : workload.delay) d = static_cast<float>(delay * draws.LogNormal(spread));
  }
  const double faster = 1 + workload.elevator * 6;  // with 64 reads in flight
  best = std::min(workload.channels / service, 64 / (service + delay)) * faster;
  return best;
}

void DrawTrouble(Draws& draws, StorageTrouble trouble, double batch_ns, Workload& workload) {
  const uint64_t samples = workload.samples();
  if (trouble == StorageTrouble::kSlower) {
    const auto times = static_cast<float>(draws.Between(2, 8));
    for (uint64_t s = samples / 3; s < samples * 2 / 3; ++s) workload.service[s] *= times;
  }
  if (trouble == StorageTrouble::kStalls) {
    const double every = draws.LogBetween(30, 150);  // batches
    const double duration = draws.LogBetween(2, 12) * batch_ns;
    for (double at = every; at < workload.batches; at += every * draws.Between(0.7, 1.3)) {
      workload.stalls.push_back({static_cast<uint64_t>(at * workload.batch_size), duration});
    }
  }
}

void DrawGaps(Draws& draws, Consumer kind, double mean, Workload& workload) {
  const uint32_t n = workload.batches;
  workload.gap.assign(n, mean);
  const double sigma = draws.Between(0.1, 0.6);
  const auto burst = static_cast<uint32_t>(2 + draws.Below(15));
  const double times = draws.LogBetween(3, 12);
  const auto every = static_cast<uint32_t>(draws.LogBetween(60, 150));
  const double pause = draws.LogBetween(10, 60);
  for (uint32_t k = 0; k < n; ++k) {
    double& gap = workload.gap[k];
    switch (kind) {
      case Consumer::kConstant:
        break;
      case Consumer::kNoisy:
        gap *= draws.LogNormal(sigma);
        break;
      case Consumer::kBursts:
        gap *= k % burst == burst - 1 ? burst * 0.99 : 0.01;
        break;
      case Consumer::kPhases:
        gap *= k / ((n + 2) / 3) == 1 ? times : 1;
        break;
      case Consumer::kPauses:
        gap *= k % every == every - 1 ? pause : draws.LogNormal(0.05);
        break;
    }
  }
}

void DrawCores(Draws& draws, bool neighbour, Workload& workload) {
  const auto all = static_cast<float>(workload.max_workers);
  workload.cores.assign(workload.batches, all);
  if (neighbour) {
    const auto left = static_cast<float>(std::max(1.0, all * draws.Between(0.25, 0.75)));
    const uint32_t third = workload.batches / 3;
    std::fill(workload.cores.begin() + third, workload.cores.begin() + 2 * third, left);
  }
  workload.whole_cores = workload.max_workers >= 4 && draws.Chance(0.3) ? 0.5 : 1;
}

std::string NameOf(const Recipe& recipe, const Workload& workload) {
  std::string name = kWorkNames[static_cast<int>(recipe.work)];
  name += std::string("/") + kStorageNames[static_cast<int>(recipe.storage)] +
          kTroubleNames[static_cast<int>(recipe.trouble)];
  name += std::string("/") + kConsumerNames[static_cast<int>(recipe.consumer)];
  if (recipe.neighbour) name += "+neighbour";
  name += "/b" + std::to_string(workload.batch_size) + "w" + std::to_string(workload.max_workers);
  return name;
}

}  // namespace

Workload MakeWorkload(uint64_t seed, uint32_t index, bool short_phases) {
  Draws draws(Draws(seed * 0x100000001B3u + index).Next());
  const Recipe recipe = DrawRecipe(draws);
  Workload workload;
  const bool phases = recipe.neighbour || recipe.consumer == Consumer::kPhases ||
                      recipe.trouble == StorageTrouble::kSlower;
  workload.batch_size = 1u << draws.Below(phases && !short_phases ? 7 : 10);
  workload.max_workers = 1 << draws.Below(6);
  workload.slot_bytes = workload.batch_size * 224.0 * 224 * 3;
  workload.buffer_bytes = draws.LogBetween(30e3, 300e3);
  const bool in_memory = recipe.storage == Storage::kMemory;
  const double mean_work = in_memory ? draws.LogBetween(20, 500) * kMicrosecond
                                     : draws.LogBetween(200, 5000) * kMicrosecond;

  // Makes as many batches as take 20 s, within reason.
  const double work_ns = workload.batch_size * mean_work / workload.max_workers;
  const double guess = work_ns * std::max(1.0, recipe.demand);
  const double least = phases && !short_phases ? 3.0 * kShortestPhase : 800;
  const double most = std::max(least, (in_memory ? 600e3 : 150e3) / workload.batch_size);
  workload.batches = static_cast<uint32_t>(std::clamp(20 * kSecond / guess, least, most));

  workload.work.resize(workload.samples());
  workload.quantum_ns = 4 * mean_work;
  DrawWork(draws, recipe.work, mean_work, workload);
  if (workload.batch_size > 1 && draws.Chance(0.2)) {
    workload.mix_ns = 0.03 * workload.batch_size * mean_work;
  }
  const double storage_ns = workload.batch_size / DrawStorage(draws, recipe.storage, workload);
  const double batch_ns = std::max(work_ns, storage_ns);
  DrawTrouble(draws, recipe.trouble, batch_ns * std::max(1.0, recipe.demand), workload);
  DrawGaps(draws, recipe.consumer, batch_ns * recipe.demand, workload);
  DrawCores(draws, recipe.neighbour, workload);
  workload.name = NameOf(recipe, workload);
  return workload;
}

Workload MakeStepChange() {
  Draws draws(5);
  Workload workload;
  workload.name = "steps";
  workload.batch_size = 32;
  workload.batches = 4500;
  workload.max_workers = 8;
  workload.slot_bytes = workload.batch_size * 224.0 * 224 * 3;
  workload.buffer_bytes = 110e3;
  workload.work.resize(workload.samples());
  workload.quantum_ns = kMillisecond;
  DrawWork(draws, Work::kLogNormal, 0.7 * kMillisecond, workload);
  workload.channels = 8;
  workload.service.assign(workload.samples(), static_cast<float>(150 * kMicrosecond));
  for (uint32_t k = 0; k < workload.batches; ++k) {
    workload.gap.push_back((k / 1500 == 1 ? 50 : 5) * kMillisecond);
  }
  workload.cores.assign(workload.batches, 8);
  return workload;
}

}  // namespace stoker::tuner_sim
