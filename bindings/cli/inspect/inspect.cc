#include "bindings/cli/inspect/inspect.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <utility>

#include "bindings/cli/inspect/inspect_file.h"
#include "core/result/try.h"
#include "core/system/machine.h"
#include "core/system/start_thread.h"

namespace stoker {
namespace {

constexpr uint64_t kFilesAtATime = 64;  // files that a thread takes at a time

struct Broken {
  uint64_t id;
  Error error;
};

// The findings of one thread, or of all.
struct Counts {
  std::map<std::string, uint64_t> extensions, formats, chroma;
  std::map<int, uint64_t> orientations;
  uint64_t sixteen_bits = 0, several_frames = 0;
  uint64_t progressive = 0, arithmetic = 0, restart_markers = 0, undecodable = 0, broken = 0;
  std::vector<Broken> listed;
  std::vector<uint64_t> bytes;
  std::vector<float> width, height, megapixels, bits_per_pixel;
};

std::string ExtensionOf(const std::string& path) {
  const size_t slash = path.rfind('/') + 1;  // npos + 1 is 0
  const size_t dot = path.rfind('.');
  if (dot == std::string::npos || dot < slash) return "";
  std::string extension = path.substr(dot);
  for (char& c : extension) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return extension;
}

void Count(const JpegDescription& header, Counts& counts) {
  ++counts.chroma[header.ChromaName()];
  ++counts.orientations[static_cast<int>(header.orientation)];
  counts.progressive += header.progressive();
  counts.arithmetic += header.arithmetic();
  counts.restart_markers += header.restart_interval > 0;
}

void Count(ImageSize size, uint64_t bytes, Counts& counts) {
  const double pixels = static_cast<double>(size.width) * size.height;
  counts.width.push_back(static_cast<float>(size.width));
  counts.height.push_back(static_cast<float>(size.height));
  counts.megapixels.push_back(static_cast<float>(pixels / 1e6));
  counts.bits_per_pixel.push_back(static_cast<float>(8 * static_cast<double>(bytes) / pixels));
}

void Count(uint64_t id, const std::string& path, FileFacts facts, size_t list_broken,
           Counts& counts) {
  ++counts.extensions[ExtensionOf(path)];
  if (facts.bytes) counts.bytes.push_back(*facts.bytes);
  if (facts.format) {
    ++counts.formats[NameOf(*facts.format)];
  } else if (facts.bytes == 0) {
    ++counts.formats["empty"];
  }
  counts.sixteen_bits += facts.sixteen_bits;
  counts.several_frames += facts.several_frames;
  if (facts.header) Count(*facts.header, counts);
  if (facts.size) Count(*facts.size, *facts.bytes, counts);
  if (!facts.error) {
    counts.undecodable += !facts.size;
    return;
  }
  ++counts.broken;
  // A thread sees ids in ascending order, so its first ones are its lowest.
  if (counts.listed.size() < list_broken) counts.listed.push_back({id, *std::move(facts.error)});
}

template <typename T>
void Append(std::vector<T>& to, std::vector<T> from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

template <typename K>
void Add(std::map<K, uint64_t>& to, const std::map<K, uint64_t>& from) {
  for (const auto& [key, count] : from) to[key] += count;
}

void Merge(Counts from, Counts& to) {
  Add(to.extensions, from.extensions);
  Add(to.formats, from.formats);
  Add(to.chroma, from.chroma);
  Add(to.orientations, from.orientations);
  to.sixteen_bits += from.sixteen_bits;
  to.several_frames += from.several_frames;
  to.progressive += from.progressive;
  to.arithmetic += from.arithmetic;
  to.restart_markers += from.restart_markers;
  to.undecodable += from.undecodable;
  to.broken += from.broken;
  Append(to.listed, std::move(from.listed));
  Append(to.bytes, std::move(from.bytes));
  Append(to.width, std::move(from.width));
  Append(to.height, std::move(from.height));
  Append(to.megapixels, std::move(from.megapixels));
  Append(to.bits_per_pixel, std::move(from.bits_per_pixel));
}

// Sorts `values`, so that the mean does not depend on the order of threads either.
template <typename T>
Distribution DistributionOf(std::vector<T>& values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) {
    return static_cast<double>(
        values[static_cast<size_t>(std::lround(share * static_cast<double>(values.size() - 1)))]);
  };
  return {.count = values.size(),
          .min = at(0),
          .p5 = at(0.05),
          .p25 = at(0.25),
          .median = at(0.5),
          .p75 = at(0.75),
          .p95 = at(0.95),
          .max = at(1),
          .mean = std::accumulate(values.begin(), values.end(), 0.0) /
                  static_cast<double>(values.size())};
}

class Inspection {
 public:
  Inspection(const SampleSource& source, const InspectOptions& options,
             const InspectProgress& progress)
      : source_(source), options_(options), progress_(progress) {}

  // The body of each thread.
  void Run(const InspectSample& look) {
    Counts counts;
    std::string path;
    while (!cancelled_) {
      const uint64_t first = next_.fetch_add(kFilesAtATime);
      if (first >= source_.size()) break;
      const uint64_t end = std::min(first + kFilesAtATime, source_.size());
      for (uint64_t id = first; id < end; ++id) {
        FileFacts facts = look(id, path);
        Count(id, path, std::move(facts), options_.list_broken, counts);
      }
      Report(end - first);
    }
    const std::lock_guard lock(mutex_);
    Merge(std::move(counts), all_);
  }

  bool cancelled() const { return cancelled_; }
  Counts& all() { return all_; }  // called after all threads have left Run

 private:
  void Report(uint64_t files) {
    const std::lock_guard lock(mutex_);
    done_ += files;
    if (progress_ && !progress_(done_, source_.size())) cancelled_ = true;
  }

  const SampleSource& source_;
  const InspectOptions& options_;
  const InspectProgress& progress_;
  std::atomic<uint64_t> next_{0};
  std::atomic<bool> cancelled_{false};
  std::mutex mutex_;
  uint64_t done_ = 0;
  Counts all_;
};

std::vector<ClassCount> CountClasses(const SampleSource& source) {
  std::vector<ClassCount> counts;
  for (const std::string& name : source.classes()) counts.push_back({name, 0});
  for (uint64_t id = 0; id < source.size(); ++id) {
    const auto label = static_cast<uint64_t>(source.LabelOf(id));
    if (label < counts.size()) ++counts[label].samples;  // a label may have no name
  }
  return counts;
}

void FillReport(Counts& counts, size_t list_broken, DatasetReport& report) {
  report.extensions = std::move(counts.extensions);
  report.formats = std::move(counts.formats);
  report.chroma = std::move(counts.chroma);
  report.orientations = std::move(counts.orientations);
  report.sixteen_bits = counts.sixteen_bits;
  report.several_frames = counts.several_frames;
  report.progressive = counts.progressive;
  report.arithmetic = counts.arithmetic;
  report.restart_markers = counts.restart_markers;
  report.total_bytes = std::accumulate(counts.bytes.begin(), counts.bytes.end(), uint64_t{0});
  report.bytes = DistributionOf(counts.bytes);
  report.width = DistributionOf(counts.width);
  report.height = DistributionOf(counts.height);
  report.megapixels = DistributionOf(counts.megapixels);
  report.bits_per_pixel = DistributionOf(counts.bits_per_pixel);
  report.undecodable = counts.undecodable;
  report.broken = counts.broken;
  std::sort(counts.listed.begin(), counts.listed.end(),
            [](const Broken& a, const Broken& b) { return a.id < b.id; });
  for (size_t i = 0; i < std::min(list_broken, counts.listed.size()); ++i) {
    report.broken_files.push_back(std::move(counts.listed[i].error));
  }
}

}  // namespace

Result<DatasetReport> Inspect(const SampleSource& source, const InspectOptions& options,
                              const InspectProgress& progress) {
  return Inspect(source, options, progress, [&source]() -> InspectSample {
    auto inspector = std::make_shared<FileInspector>();
    return [&source, inspector](uint64_t id, std::string& path) {
      source.PathOf(source.RangeOf(id).file, path);
      return inspector->Inspect(path);
    };
  });
}

Result<DatasetReport> Inspect(const SampleSource& source, const InspectOptions& options,
                              const InspectProgress& progress,
                              const std::function<InspectSample()>& make_inspect) {
  TRY(CheckThreads(options.threads));
  const auto start = std::chrono::steady_clock::now();
  Inspection inspection(source, options, progress);
  InParallel(options.threads, [&] { inspection.Run(make_inspect()); });
  if (inspection.cancelled()) {
    return Error{Code::kCancelled, "stopped before all samples were inspected", source.Describe()};
  }
  DatasetReport report;
  report.source = source.Describe();
  report.samples = source.size();
  report.list_bytes = source.memory_bytes();
  report.classes = CountClasses(source);
  report.skipped = source.Skipped();
  FillReport(inspection.all(), options.list_broken, report);
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

}  // namespace stoker
