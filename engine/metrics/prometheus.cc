#include "engine/metrics/stats.h"

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/metrics/counters.h"

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

  void Begin(const std::string& name, const char* type, const std::string& help) {
    name_ = "stoker_" + name;
    text_ += "# HELP " + name_ + " " + help + ".\n# TYPE " + name_ + " " + type + "\n";
  }
  void Sample(const std::string& value, std::span<const Label> labels) {
    text_ += name_ + loader_;
    for (const Label& label : labels) {
      text_ += std::string(",") + label.name + "=\"" + Escaped(label.value) + "\"";
    }
    text_ += "} " + value + "\n";
  }
  std::string Take() { return std::move(text_); }

 private:
  const std::string loader_;
  std::string name_;
  std::string text_;
};

// Writes the samples of a counter.
struct CounterWriter {
  const CounterRow& row;
  Page& page;

  void operator()(uint64_t* value) const { Write(NumberOf(*value), ""); }
  void operator()(uint64_t value) const { Write(NumberOf(value), ""); }
  void operator()(int* value) const { Write(std::to_string(*value), ""); }
  void operator()(double* value) const { Write(std::to_string(*value), ""); }
  void operator()(CoreTime* time) const { Write(std::to_string(time->share()), ""); }
  void operator()(std::vector<uint64_t>* list) const {
    for (size_t i = 0; i < list->size(); ++i) Write(NumberOf((*list)[i]), std::to_string(i));
  }
  void operator()(const NamedCounts& counts) const {
    for (const auto& [name, count] : counts) Write(NumberOf(*count), name);
  }
  void operator()(const auto&) const {}  // WriteTexts writes these

 private:
  std::string NumberOf(uint64_t value) const {
    return row.unit == CounterUnit::kNanoseconds ? SecondsText(value) : std::to_string(value);
  }
  void Write(const std::string& value, const std::string& name) const {
    const MetricSample& sample = row.sample;
    std::vector<Label> labels;
    if (sample.label != nullptr) {
      labels.push_back({sample.label, sample.value != nullptr ? sample.value : name});
    }
    if (sample.by != nullptr) labels.push_back({sample.by, name});
    page.Sample(value, labels);
  }
};

std::vector<const CounterRow*> CountersOf(const Metric& metric) {
  std::vector<const CounterRow*> rows;
  for (const CounterRow& row : AllCounters()) {
    const char* name = row.sample.metric;
    if (name != nullptr && std::string_view(name) == metric.name) rows.push_back(&row);
  }
  return rows;
}

// Texts are labels of a metric that is always 1.
void WriteTexts(const std::vector<const CounterRow*>& rows, LoaderStats& stats, Page& page) {
  std::vector<Label> labels;
  labels.reserve(rows.size());
  for (const CounterRow* row : rows) {
    labels.push_back({row->sample.label, *std::get<std::string*>(row->in(stats))});
  }
  page.Sample("1", labels);
}

}  // namespace

std::string PrometheusText(const LoaderStats& stats, std::string_view loader_name) {
  LoaderStats read = stats;  // the table gives access to what may be changed
  Page page(loader_name);
  for (const Metric& metric : AllMetrics()) {
    const std::vector<const CounterRow*> rows = CountersOf(metric);
    const bool counts = std::string_view(metric.name).ends_with("_total");
    page.Begin(metric.name, counts ? "counter" : "gauge",
               metric.help != nullptr ? metric.help : rows[0]->doc);
    if (rows[0]->unit == CounterUnit::kText) {
      WriteTexts(rows, read, page);
      continue;
    }
    for (const CounterRow* row : rows) std::visit(CounterWriter{*row, page}, row->in(read));
  }
  return page.Take();
}

}  // namespace stoker
