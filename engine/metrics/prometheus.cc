#include "engine/metrics/stats.h"

#include <cstdint>
#include <initializer_list>

namespace stoker {

namespace {

std::string Escaped(std::string_view value) {
  std::string text;
  for (const char c : value) {
    if (c == '\n') {
      text += "\\n";
      continue;
    }
    if (c == '\\' || c == '"') text += '\\';
    text += c;
  }
  return text;
}

// Returns seconds, exact to the nanosecond.
std::string SecondsText(uint64_t ns) {
  std::string fraction = std::to_string(ns % 1'000'000'000);
  fraction.insert(0, 9 - fraction.size(), '0');
  return std::to_string(ns / 1'000'000'000) + "." + fraction;
}

struct Label {
  const char* name;
  std::string value;
};

class Page {
 public:
  explicit Page(std::string_view loader) : loader_("{loader=\"" + Escaped(loader) + "\"") {}

  void Begin(const char* name, const char* type, const char* help) {
    name_ = std::string("stoker_") + name;
    text_ += "# HELP " + name_ + " " + help + "\n# TYPE " + name_ + " " + type + "\n";
  }
  void Sample(const std::string& value, std::initializer_list<Label> labels = {}) {
    text_ += name_ + loader_;
    for (const Label& label : labels) {
      text_ += std::string(",") + label.name + "=\"" + Escaped(label.value) + "\"";
    }
    text_ += "} " + value + "\n";
  }
  void Count(const char* name, const char* help, uint64_t value) {
    Begin(name, "counter", help);
    Sample(std::to_string(value));
  }
  template <typename Number>
  void Gauge(const char* name, const char* help, Number value) {
    Begin(name, "gauge", help);
    Sample(std::to_string(value));
  }
  std::string Take() { return std::move(text_); }

 private:
  const std::string loader_;
  std::string name_;
  std::string text_;
};

void AddWork(const LoaderStats& stats, Page& page) {
  page.Count("samples_total", "Samples processed, including failed ones.", stats.samples);
  page.Count("batches_total", "Batches delivered.", stats.batches);
  page.Begin("bad_samples_total", "counter", "Samples that could not be used, by class.");
  for (int i = 0; i < kSampleFaults; ++i) {
    page.Sample(std::to_string(stats.bad.faults[static_cast<size_t>(i)]),
                {{"class", NameOf(static_cast<SampleFault>(i))}});
  }
  page.Count("substituted_rows_total", "Rows that have another sample.", stats.bad.substituted);
  page.Count("dropped_rows_total", "Rows that batches lack.", stats.bad.dropped);
  page.Count("read_bytes_total", "Bytes of the files read, cached or not.", stats.bytes_read);
  page.Begin("stage_seconds_total", "counter",
             "Time by stage: workers', and of calls of the program's function.");
  page.Sample(SecondsText(stats.stages.decode_ns), {{"stage", "decode"}});
  page.Sample(SecondsText(stats.stages.resize_ns), {{"stage", "resize"}});
  page.Sample(SecondsText(stats.stages.augment_ns), {{"stage", "augment"}});
  page.Sample(SecondsText(stats.stages.mix_ns), {{"stage", "mix"}});
  page.Sample(SecondsText(stats.stages.map_ns), {{"stage", "map"}});
  page.Count("map_calls_total", "Calls of the program's function with whole batches.",
             stats.map_calls);
  page.Begin("worker_busy_seconds_total", "counter", "Time that a worker spent on samples.");
  for (size_t worker = 0; worker < stats.worker_busy_ns.size(); ++worker) {
    page.Sample(SecondsText(stats.worker_busy_ns[worker]), {{"worker", std::to_string(worker)}});
  }
  page.Gauge("worker_core_share", "Share of their busy time in which workers had a core, sampled.",
             stats.clocked.share());
  page.Begin("reader_cpu_seconds_total", "counter",
             "CPU time of the reader threads, for all loaders of the process.");
  page.Sample(SecondsText(stats.read_cpu_ns));
}

void AddWaits(const LoaderStats& stats, Page& page) {
  page.Begin("wait_seconds_total", "counter",
             "Time that the consumer waited for batches, by cause.");
  for (const NamedCause& cause : kNamedCauses) {
    page.Sample(SecondsText(stats.waited.*cause.ns), {{"cause", cause.name}});
  }
  page.Count("stalls_total", "Long waits during which nothing moved.", stats.stalls);
  page.Begin("consumer_seconds_total", "counter",
             "Time between receiving a batch and asking for the next one.");
  page.Sample(SecondsText(stats.consumer_ns));
}

void AddDecoded(const DecodePaths& paths, Page& page) {
  uint64_t others = 0;
  for (const uint64_t count : paths.fallback) others += count;
  page.Begin("jpeg_images_total", "counter", "JPEGs decoded, packed or not, by decoder.");
  page.Sample(std::to_string(paths.fast), {{"decoder", "stoker"}});
  page.Sample(std::to_string(paths.packed), {{"decoder", "stoker-packed"}});
  page.Sample(std::to_string(others), {{"decoder", "libjpeg-turbo"}});
  page.Count("jpeg_no_end_marker_total",
             "JPEGs with complete data but no end-of-image marker, decoded by workers or a device.",
             paths.no_end_marker);
  page.Count("jpeg_accepted_truncated_total",
             "JPEGs with missing data, which accept_truncated accepts.", paths.accepted_truncated);
  page.Count("jpeg_scaled_total", "JPEGs decoded at a reduced size.", paths.scaled);
  page.Count("jpeg_scalable_total",
             "JPEGs that the option decode=\"scaled\" would have decoded at a reduced size.",
             paths.scalable);
  page.Begin("images_for_device_total", "counter",
             "Images that a device was to decode, by who did, and why it was a worker.");
  page.Sample(std::to_string(paths.on_device), {{"by", "device"}, {"reason", ""}});
  for (size_t i = 0; i < kOnWorkerReasons; ++i) {
    page.Sample(std::to_string(paths.on_worker[i]),
                {{"by", "worker"}, {"reason", NameOf(static_cast<OnWorker>(i))}});
  }
  page.Begin("crop_index_images_total", "counter",
             "Images with a crop index, by result: used, stale or wrong.");
  page.Sample(std::to_string(paths.indexed), {{"result", "used"}});
  page.Sample(std::to_string(paths.stale), {{"result", "stale"}});
  page.Sample(std::to_string(paths.contradicted), {{"result", "wrong"}});
}

void AddCache(const CacheCounts& cache, Page& page) {
  page.Begin("cache_samples_total", "counter",
             "Samples that the loader's cache had, or did not have.");
  page.Sample(std::to_string(cache.hits), {{"result", "hit"}});
  page.Sample(std::to_string(cache.misses), {{"result", "miss"}});
  page.Count("cache_kept_samples_total", "Samples that this loader has added to its cache.",
             cache.kept);
  page.Count("cache_refused_samples_total", "Samples not added because the cache is full.",
             cache.refused);
  page.Gauge("cache_bytes", "Bytes of the samples in the cache, of all that share it.",
             cache.bytes);
  page.Gauge("cache_limit_bytes", "Bytes that the cache may take; 0: there is none.",
             cache.most_bytes);
}

void AddSettings(const LoaderStats& stats, Page& page) {
  page.Gauge("depth", "Current limit of batches in production.", stats.depth);
  page.Gauge("workers", "Current limit of workers that decode at a time.", stats.workers);
  page.Gauge("threads", "Number of workers, for all loaders.", stats.threads);
  page.Gauge("reads", "Current limit of reads in flight.", stats.reads);
  page.Count("decisions_total", "Changes of depth, workers and reads.", stats.decisions_made);
  page.Begin("loader_info", "gauge", "Always 1; the executor and the reader of the loader.");
  page.Sample("1", {{"executor", stats.executor}, {"reader", stats.reader}});
}

void AddMemory(const LoaderStats& stats, Page& page) {
  page.Gauge("lent_batches", "Batches held by the caller.", stats.lent_batches);
  page.Gauge("lent_bytes", "Memory of batches held by the caller.", stats.lent_bytes);
  page.Gauge("batch_bytes", "Memory of one batch.", stats.slot_bytes);
  page.Gauge("pinned_bytes", "Memory of batches that is pinned for a device.", stats.pinned_bytes);
  page.Gauge("memory_used_bytes", "Working memory in use, of all loaders.", stats.memory_used);
  page.Gauge("memory_peak_bytes", "Highest working memory in use so far.", stats.memory_peak);
  page.Gauge("memory_budget_bytes", "Limit of the working memory.", stats.memory_budget);
}

}  // namespace

std::string PrometheusText(const LoaderStats& stats, std::string_view loader_name) {
  Page page(loader_name);
  AddWork(stats, page);
  AddWaits(stats, page);
  AddDecoded(stats.decoded, page);
  AddCache(stats.cache, page);
  AddSettings(stats, page);
  AddMemory(stats, page);
  return page.Take();
}

}  // namespace stoker
