#include "engine/metrics/advice.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/result/plural.h"

namespace stoker {

namespace {

constexpr double kNoWait = 0.03;        // waits below this need no advice; the tuner accepts 0.85%
constexpr double kOccasionally = 0.15;  // below this, throughput suffices on average
constexpr double kAlways = 0.9;         // above this, the consumer only takes batches
// Workers wait for a core if they have one for less than this share of their time.
constexpr double kEnoughCore = 0.9;

enum class Cause : uint8_t { kStorage, kDecode, kMap, kCopy, kOther };

double Seconds(uint64_t ns) { return static_cast<double>(ns) * 1e-9; }

double Ratio(double a, double b) { return b > 0 ? a / b : 0; }

std::string FixedText(double value, int digits) {
  std::array<char, 400> text{};  // at most 309 digits
  (void)std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return text.data();
}

// "0.3%", "41%".
std::string Percent(double share) {
  const double percent = 100 * std::clamp(share, 0.0, 1.0);
  return FixedText(percent, percent < 9.95 ? 1 : 0) + "%";
}

// "6.2", "17", "3,420".
std::string Number(double value) {
  std::string text = FixedText(value, value < 9.95 ? 1 : 0);
  const size_t point = std::min(text.find('.'), text.size());
  for (size_t at = point; at > 3; at -= 3) text.insert(at - 3, 1, ',');
  return text;
}

// "35 MB/s".
std::string Rate(double bytes_per_second) {
  constexpr std::array<const char*, 4> kUnits{" B/s", " kB/s", " MB/s", " GB/s"};
  size_t unit = 0;
  for (; bytes_per_second >= 999.5 && unit + 1 < kUnits.size(); ++unit) bytes_per_second /= 1000;
  return Number(bytes_per_second) + kUnits[unit];
}

std::string Capitalize(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 32);
  return text;
}

// The work that takes most of the workers' time.
enum class Work : uint8_t {
  kDecoding,
  kMakingBatches,
  kPreparingCrops,
  kAugmenting,
  kMixing,
  kMap
};

constexpr const char* kByWorkers = "let the workers decode (`to_device(…, decode=\"workers\")`)";

class Adviser {
 public:
  explicit Adviser(const LoaderStats& stats, std::optional<double> rate = std::nullopt)
      : stats_(stats),
        rate_(rate),
        wait_(Seconds(stats.wait_ns)),
        consumer_(Seconds(stats.consumer_ns)),
        share_(Ratio(wait_, wait_ + consumer_)),
        workers_(std::max(stats.workers > 0 ? stats.workers : stats.threads, 0)) {
    causes_ = {{{stats.waited.storage_ns, Cause::kStorage},
                {stats.waited.decode_ns, Cause::kDecode},
                {stats.waited.map_ns, Cause::kMap},
                {stats.waited.copy_ns, Cause::kCopy},
                {stats.waited.other_ns, Cause::kOther}}};
    std::ranges::stable_sort(causes_, [](auto& a, auto& b) { return a.first > b.first; });
  }

  std::string Text() const {
    if (TooEarly()) return "";
    if (share_ < kNoWait) {
      return "The consumer is the limit: it waited " + Percent(share_) + " of the time." +
             (stats_.fuller_tokens == 0 ? " There is nothing to do here." : FillText());
    }
    if (causes_[0].first == 0) {
      return "The consumer waited " + Percent(share_) + " of the time." + FillText();
    }
    const Cause cause = causes_[0].second;
    return (OnlyTakesBatches() && cause != Cause::kOther ? Limit(cause) : DescribeWait(cause)) +
           (cause == Cause::kDecode ? DescribeLeft() + DescribeOthers() : "") + Next() +
           Sentence(RemediesFor(cause)) + FillText();
  }

  // `cold`: see FirstChange.
  std::string FirstAdvice(bool cold) const {
    if (TooEarly() || share_ < kNoWait || causes_[0].first == 0) return "";
    std::vector<const Remedy*> remedies = RemediesFor(causes_[0].second);
    if (cold) std::erase_if(remedies, [](const Remedy* one) { return one->kind == Kind::kCached; });
    if (remedies.empty()) return "";
    const auto first =
        std::ranges::find_if(remedies, [](const Remedy* one) { return one->kind != Kind::kCosts; });
    return Capitalize(TextOf(first == remedies.end() ? *remedies.front() : **first)) + ".";
  }

 private:
  using Setting = TunerDecision::Setting;
  using DecisionReason = TunerDecision::Reason;

  enum class Kind : uint8_t {
    kPlain,
    kCosts,   // another machine, or other pixels
    kCached,  // keeps files in the page cache
  };

  struct Remedy {
    Cause of;
    bool (Adviser::*applies)() const;
    const char* text;
    Kind kind = Kind::kPlain;
    // Returns the words between `text` and `after`; null if there are none.
    std::string (Adviser::*detail)() const = nullptr;
    const char* after = "";
  };

  // All remedies, in the order in which they are given.
  static std::span<const Remedy> AllRemedies() {
    using A = Adviser;
    static constexpr auto kRemedies = std::to_array<Remedy>({
        {Cause::kStorage, &A::is_called, "call the source on more threads"},
        {Cause::kStorage, &A::is_called, "make its calls faster"},
        {Cause::kStorage, &A::is_remote,
         "keep what was read on a local disk (the source's `cache`)"},
        {Cause::kStorage, &A::is_remote, "allow more reads at a time (`reads_in_flight`, now ",
         Kind::kPlain, &A::ReadsText, ")"},
        {Cause::kStorage, &A::ReadsFiles, "use a faster disk", Kind::kCosts},
        {Cause::kStorage, &A::ReadsFiles, "keep the files in the page cache", Kind::kCached},
        {Cause::kStorage, &A::ReadsByPread,
         "read with io_uring (`stoker doctor` says whether it can)"},
        {Cause::kStorage, &A::ReadsAreLimited, "allow more reads at a time (now ", Kind::kPlain,
         &A::ReadsText, ")"},
        {Cause::kDecode, &A::DepthIsLimited, "allow more batches in production (depth, now ",
         Kind::kPlain, &A::DepthText, ", or memory_budget)"},
        {Cause::kDecode, &A::MemoryLimitsDepth, "allow more batches in production (memory_budget)"},
        {Cause::kDecode, &A::ShortOfCores, "keep other programs off the loader's cores"},
        {Cause::kDecode, &A::ShortOfCores, "raise the process's CPU limit", Kind::kCosts},
        {Cause::kDecode, &A::NeedsCores, "add cores", Kind::kCosts},
        {Cause::kDecode, &A::WorkersAreLimited, "let the loader have more than ", Kind::kPlain,
         &A::WorkersText, " workers"},
        {Cause::kDecode, &A::Maps, "make ", Kind::kPlain, &A::Function, " faster"},
        {Cause::kDecode, &A::Transforms, "leave out transforms", Kind::kCosts},
        {Cause::kDecode, &A::CacheIsFull, "give the cache more bytes (it is full, and had ",
         Kind::kPlain, &A::HitsText, " of the samples)"},
        {Cause::kDecode, &A::MayPack,
         "pack the images (`stoker pack` for folders, or the option `cache`)"},
        {Cause::kDecode, &A::CropsLackRoom, "give crops more room (`to_device(…, crop_bytes=…)`)"},
        {Cause::kDecode, &A::CropsLackRoom, "store smaller images", Kind::kCosts},
        {Cause::kDecode, &A::DeviceLeavesImages, kByWorkers},
        {Cause::kDecode, &A::IndexIsStale, "rebuild the crop index (`stoker index`)"},
        {Cause::kDecode, &A::LacksIndex, "build a crop index (`stoker index`)"},
        {Cause::kDecode, &A::DecodesProgressive, "make progressive JPEGs baseline (`jpegtran`)"},
        {Cause::kDecode, &A::MayScale, "decode large images scaled (`decode=\"scaled\"`)",
         Kind::kCosts},
        {Cause::kDecode, &A::Decodes, "decode smaller images", Kind::kCosts},
        {Cause::kMap, &A::Always, "make ", Kind::kPlain, &A::Function, " faster"},
        {Cause::kMap, &A::Always, "call it on more threads"},
        {Cause::kCopy, &A::DecodesThere, kByWorkers},
        {Cause::kCopy, &A::Always, "make batches smaller in bytes", Kind::kCosts},
        {Cause::kCopy, &A::Always, "see `stoker doctor` about the device's link"},
        {Cause::kOther, &A::Always, "take larger batches"},
        {Cause::kOther, &A::Always, "release them sooner"},
    });
    return kRemedies;
  }

  std::vector<const Remedy*> RemediesFor(Cause cause) const {
    std::vector<const Remedy*> remedies;
    for (const Remedy& one : AllRemedies()) {
      if (one.of == cause && (this->*one.applies)()) remedies.push_back(&one);
    }
    return remedies;
  }

  std::string TextOf(const Remedy& one) const {
    return one.detail == nullptr ? one.text : one.text + (this->*one.detail)() + one.after;
  }

  // {"a", "b", "c"} → " A, b, or c."; an empty list gives an empty text.
  std::string Sentence(const std::vector<const Remedy*>& parts) const {
    std::string text;
    for (size_t i = 0; i < parts.size(); ++i) {
      if (i > 0) text += i + 1 < parts.size() ? ", " : parts.size() > 2 ? ", or " : " or ";
      text += TextOf(*parts[i]);
    }
    return text.empty() ? text : " " + Capitalize(std::move(text)) + ".";
  }

  std::string FillText() const {
    if (stats_.fuller_tokens == 0) return "";
    return " Batches are " + Percent(stats_.batch_fill) + " full: raise batch_tokens to " +
           Number(static_cast<double>(stats_.fuller_tokens)) +
           ", four times the largest sample, or more.";
  }

  bool Always() const { return true; }
  bool TooEarly() const { return stats_.batches < 2 || !(wait_ + consumer_ > 0); }
  bool OnlyTakesBatches() const { return share_ > kAlways; }
  bool in_memory() const { return stats_.reader == "none"; }
  bool is_called() const { return stats_.reader == "calls"; }
  bool is_remote() const { return stats_.reader == "objects"; }

  bool ReadsFiles() const { return !is_called() && !is_remote(); }
  bool ReadsByPread() const { return stats_.reader == "pread"; }
  bool ReadsAreLimited() const { return ReadsFiles() && stats_.reads > 0 && stats_.reads_given; }
  std::string ReadsText() const { return std::to_string(stats_.reads); }

  // The share of the images that a device decodes. Preparing one takes a seventh of the time of
  // decoding it.
  double ForDevice() const {
    return Ratio(static_cast<double>(stats_.decoded.on_device),
                 static_cast<double>(stats_.samples));
  }

  bool DecodesThere() const { return ForDevice() > 0.5; }

  uint64_t LeftToWorkers() const {
    const auto& left = stats_.decoded.on_worker;
    return std::accumulate(left.begin(), left.end(), uint64_t{0});
  }

  // Why workers decode most of the images meant for a device; nullopt if they do not.
  std::optional<OnWorker> ReasonLeft() const {
    if (LeftToWorkers() <= stats_.decoded.on_device) return std::nullopt;
    const auto& left = stats_.decoded.on_worker;
    return static_cast<OnWorker>(std::ranges::max_element(left) - left.begin());
  }

  std::string DescribeLeft() const {
    const std::optional<OnWorker> why = ReasonLeft();
    if (!why) return "";
    const auto left = static_cast<double>(LeftToWorkers());
    return " Workers decode " +
           Percent(left / (left + static_cast<double>(stats_.decoded.on_device))) +
           " of what the device was to decode, most often because " + Reason(*why) + ".";
  }

  static std::string Reason(OnWorker why) {
    switch (why) {
      case OnWorker::kNotPrepared:
        return "an image is neither packed nor a JPEG with a usable crop index";
      case OnWorker::kUnsupported:
        return "it cannot make such a crop";
      case OnWorker::kDamaged:
        return "an image is damaged, or has changed since it was indexed";
      case OnWorker::kNoRoom:
        break;
    }
    return "the crops of a batch have no room";
  }

  // The work that takes most of the workers' time.
  Work MostWork() const {
    const StageTimes& stages = stats_.stages;
    const uint64_t mapped = stats_.map_threads == 0 ? stages.map_ns : 0;  // by workers
    const uint64_t all =
        stages.decode_ns + stages.resize_ns + stages.augment_ns + stages.mix_ns + mapped;
    if (mapped > all / 2) return Work::kMap;
    if (stages.mix_ns > all / 2) return Work::kMixing;
    if (stages.augment_ns > all / 2) return Work::kAugmenting;
    if (ForDevice() > 0.9) return Work::kPreparingCrops;
    return in_memory() ? Work::kMakingBatches : Work::kDecoding;
  }

  std::string WorkText() const {
    switch (MostWork()) {
      case Work::kMap:
        return Function();
      case Work::kMixing:
        return "mixing";
      case Work::kAugmenting:
        return "augmenting";
      case Work::kPreparingCrops:
        return "preparing crops for the device";
      case Work::kMakingBatches:
        return "making batches";
      case Work::kDecoding:
        break;
    }
    return "decoding";
  }

  std::string NameOf(Cause cause) const {
    switch (cause) {
      case Cause::kStorage:
        return is_called() ? "calling the source" : "storage";
      case Cause::kDecode:
        return WorkText();
      case Cause::kMap:
        return Function();
      case Cause::kCopy:
        // A copy waits until the device has decoded what it overwrites.
        return DecodesThere() ? "copying to the device and decoding there"
                              : "copying to the device";
      case Cause::kOther:
        break;
    }
    return "waking up";
  }

  std::string Function() const { return "your function " + stats_.map; }

  std::string Origin() const { return is_called() ? "the source" : "storage"; }

  // For a consumer that takes batches as fast as they come.
  std::string Limit(Cause cause) const {
    const double seconds = wait_ + consumer_;
    std::string text = Capitalize(NameOf(cause)) + " is the limit, at " +
                       Number(rate_.value_or(static_cast<double>(stats_.samples) / seconds)) +
                       " samples/s";
    if (cause == Cause::kDecode && workers_ > 0) {
      text += " with " + std::to_string(workers_) + Plural(workers_, " worker", " workers") +
              ", busy " + Percent(busy()) + " of the time";
      if (ShortOfCores())
        text += ", and with a core " + Percent(stats_.clocked.share()) + " of that";
    } else if (cause == Cause::kMap) {
      text += ": a batch takes it " + CallTime() + ", and it has " + MapThreads();
    } else if (cause == Cause::kStorage) {
      text += ", " + Rate(static_cast<double>(stats_.bytes_read) / seconds);
      if (stats_.reads > 0 && !is_called())
        text += " with " + std::to_string(stats_.reads) +
                Plural(stats_.reads, " read at a time", " reads at a time");
    }
    return text + ".";
  }

  // For a consumer that works on its batches.
  std::string DescribeWait(Cause cause) const {
    const std::string waited = "The consumer waited " + Percent(share_) + " of the time";
    switch (cause) {
      case Cause::kDecode:
        return waited + ": " + Cores();
      case Cause::kStorage:
        if (share_ < kOccasionally) return waited + ": " + Origin() + " is late occasionally.";
        return waited + ": " + Origin() + " brings " +
               Rate(Ratio(static_cast<double>(stats_.bytes_read), wait_ + consumer_)) +
               " and should bring " +
               Rate(Ratio(static_cast<double>(stats_.bytes_read), consumer_)) + ".";
      case Cause::kMap:
        return waited + ": " + Function() + " takes " + CallTime() + " for a batch, on " +
               MapThreads() + ", and a step takes " + Milliseconds(StepSeconds()) + ".";
      case Cause::kCopy:
        return waited + ": batches were on their way to the device" +
               (DecodesThere() ? ", or decoded there." : ".");
      case Cause::kOther:
        break;
    }
    return waited + ", most of it for threads to wake up, or for memory that it held itself.";
  }

  std::string MapThreads() const {
    return std::to_string(stats_.map_threads) + Plural(stats_.map_threads, " thread", " threads");
  }
  double StepSeconds() const { return Ratio(consumer_, static_cast<double>(stats_.batches)); }
  std::string CallTime() const {
    return Milliseconds(
        Ratio(Seconds(stats_.stages.map_ns), static_cast<double>(stats_.map_calls)));
  }
  static std::string Milliseconds(double seconds) { return Number(1000 * seconds) + " ms"; }

  // The number of workers, as busy as they are now, that would keep up with the consumer. It is
  // also the number of cores, if workers never waited for one.
  double needed() const { return Ratio(Seconds(stats_.work_ns), consumer_); }
  double cores() const { return needed() * stats_.clocked.share(); }
  bool ShortOfCores() const { return stats_.clocked.share() < kEnoughCore; }
  bool EnoughOnAverage() const { return needed() < workers_; }
  double busy() const { return Ratio(Seconds(stats_.work_ns), (wait_ + consumer_) * workers_); }
  bool HalfIsEnough() const {
    return workers_ > 0 && (OnlyTakesBatches() ? busy() : needed() / workers_) <= 0.5;
  }

  // Whether other loaders have the workers: the tuner would give more to a loader that needs all of
  // its own, if it could.
  bool OthersHaveWorkers() const {
    return workers_ > 0 && stats_.threads > workers_ && !stats_.workers_given &&
           (OnlyTakesBatches() ? busy() > kAlways : !EnoughOnAverage());
  }

  std::string DescribeOthers() const {
    if (!OthersHaveWorkers()) return "";
    return " Other loaders have the rest of the " + std::to_string(stats_.threads) + " workers.";
  }

  // Whether the last change of this setting had this reason.
  bool LastChangeWas(Setting setting, DecisionReason reason) const {
    const auto last = std::ranges::find(stats_.decisions.rbegin(), stats_.decisions.rend(), setting,
                                        &TunerDecision::setting);
    return last != stats_.decisions.rend() && last->reason == reason;
  }

  // Whether one more batch would not fit into the half of the budget that is for batches.
  bool MemoryIsShort() const {
    return LastChangeWas(Setting::kDepth, DecisionReason::kLimit) ||
           (stats_.slot_bytes > 0 && stats_.depth > 0 &&
            static_cast<double>(stats_.slot_bytes) * (stats_.depth + 1.0) >
                static_cast<double>(stats_.memory_budget) / 2);
  }

  std::string Cores() const {
    const std::string had = Percent(stats_.clocked.share()) + " of the time";
    std::string text = WorkText() + " needs " + Number(std::max(cores(), 0.1)) + " cores";
    if (EnoughOnAverage()) text += " on average";
    if (workers_ > 0) text += " and has " + std::to_string(workers_);
    if (EnoughOnAverage()) {
      text += ", but needs more at times";
    } else if (workers_ > 0 && ShortOfCores()) {
      text += workers_ == 1 ? " worker, which had a core " + had
                            : " workers, each of which had a core " + had;
    }
    return text + ".";
  }

  // Returns the second cause, if it matters.
  std::string Next() const {
    const auto [ns, cause] = causes_[1];
    const double share = Ratio(Seconds(ns), Seconds(stats_.waited.sum()));
    if (share < 0.25 || cause == Cause::kOther) return "";
    return " " + Capitalize(NameOf(cause)) + " is next, with " + Percent(share) + " of the wait.";
  }

  // Whether the workers make enough on average, but not at times.
  bool LacksBatches() const { return !OnlyTakesBatches() && EnoughOnAverage(); }
  bool DepthIsLimited() const { return LacksBatches() && stats_.depth_given && stats_.depth > 0; }
  bool MemoryLimitsDepth() const { return LacksBatches() && !DepthIsLimited() && MemoryIsShort(); }
  std::string DepthText() const { return std::to_string(stats_.depth); }

  bool MoreWorkersHelp() const {
    return !(ShortOfCores() && cores() < workers_) && !HalfIsEnough();
  }
  bool HasIdleWorkers() const { return stats_.threads > workers_ && !OthersHaveWorkers(); }
  bool NeedsCores() const { return MoreWorkersHelp() && !HasIdleWorkers(); }
  bool WorkersAreLimited() const {
    return MoreWorkersHelp() && HasIdleWorkers() && stats_.workers_given && workers_ > 0;
  }
  std::string WorkersText() const {
    return std::to_string(workers_) + " of the " + std::to_string(stats_.threads);
  }

  bool Maps() const { return MostWork() == Work::kMap; }
  bool Transforms() const { return MostWork() == Work::kMixing || MostWork() == Work::kAugmenting; }
  bool Decodes() const { return MostWork() == Work::kDecoding; }

  // An existing cache is not a remedy: it packs photographs in the first epoch.
  bool CacheIsFull() const { return Decodes() && stats_.cache.refused > 0; }
  bool MayPack() const {
    return Decodes() && !CacheIsFull() && stats_.cache.place.empty() &&
           stats_.decoded.fast - stats_.decoded.progressive > stats_.samples / 2 && ReadsFiles();
  }
  std::string HitsText() const {
    const CacheCounts& cache = stats_.cache;
    return Percent(
        Ratio(static_cast<double>(cache.hits), static_cast<double>(cache.hits + cache.misses)));
  }

  bool CropsLackRoom() const { return Decodes() && ReasonLeft() == OnWorker::kNoRoom; }
  bool DeviceLeavesImages() const {
    return Decodes() && ReasonLeft() && ReasonLeft() != OnWorker::kNotPrepared;
  }

  uint64_t Decoded() const {
    const auto& slow = stats_.decoded.fallback;
    return std::accumulate(slow.begin(), slow.end(), stats_.decoded.fast);
  }
  bool IndexIsStale() const {
    const DecodePaths& paths = stats_.decoded;
    const bool changed = ReasonLeft() == OnWorker::kDamaged && paths.fast > paths.packed;
    return Decodes() && (changed || paths.stale + paths.contradicted > Decoded() / 20);
  }
  bool LacksIndex() const {
    const DecodePaths& paths = stats_.decoded;
    return Decodes() && !IndexIsStale() && stats_.may_have_crop_index && paths.indexed == 0 &&
           paths.fast - paths.progressive > Decoded() / 2 &&
           (stats_.crops_at_random || ReasonLeft() == OnWorker::kNotPrepared);
  }
  bool DecodesProgressive() const {
    return Decodes() && stats_.decoded.progressive > Decoded() / 4;
  }
  bool MayScale() const { return Decodes() && stats_.decoded.scalable > stats_.samples / 4; }

  const LoaderStats& stats_;
  const std::optional<double> rate_;  // measured by the caller
  const double wait_;
  const double consumer_;
  const double share_;
  const int workers_;
  std::array<std::pair<uint64_t, Cause>, 5> causes_;  // largest first
};

}  // namespace

std::string Advice(const LoaderStats& stats) { return Adviser(stats).Text(); }

std::string Advice(const LoaderStats& stats, double samples_per_second) {
  return Adviser(stats, samples_per_second).Text();
}

std::string FirstChange(const LoaderStats& stats, bool cold) {
  return Adviser(stats).FirstAdvice(cold);
}

}  // namespace stoker
