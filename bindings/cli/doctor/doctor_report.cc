#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "bindings/cli/doctor/doctor.h"
#include "bindings/cli/text/report_text.h"

namespace stoker {

namespace {

using Json = nlohmann::ordered_json;

// One finding: a line of the text, and the same as members of the JSON object.
struct Fact {
  enum class Style : uint8_t { kPlain, kGood, kMissing };

  std::string name;  // at the beginning of the line; empty means the line belongs to the one before
  std::string text;
  Json members = Json::object();
  Style style = Style::kPlain;
};
using Facts = std::vector<Fact>;

// Returns "12.4" for 12040.
std::string Version(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

// Returns null if unknown.
Json ValueOrNull(bool known, Json value) { return known ? std::move(value) : Json(); }

Fact LibrariesFact(const DoctorReport& report) {
  Fact fact{.name = "libraries", .text = "", .members = {{"libraries", Json::object()}}};
  for (const auto& [name, version, found] : report.libraries) {
    fact.text += fmt::format("{}{} {}", fact.text.empty() ? "" : ", ", name, version);
    fact.members["libraries"][name] = version;
    if (!found) fact.style = Fact::Style::kMissing;
  }
  return fact;
}

Facts MachineFacts(const DoctorReport& report) {
  const auto memlock = report.memlock_bytes;
  return {
      {"compiler",
       fmt::format("{}, {}", report.compiler, report.build),
       {{"compiler", report.compiler}, {"build", report.build}}},
      {"system", report.kernel, {{"system", report.kernel}}},
      {"cores", fmt::format("{} allotted", report.cores), {{"cores", report.cores}}},
      {"memory",
       fmt::format("{} available, {} of them the default budget",
                   MemoryText(report.available_memory), MemoryText(report.memory_budget)),
       {{"available_memory_bytes", report.available_memory},
        {"memory_budget_bytes", report.memory_budget}}},
      {"reader",
       report.reader_reason,
       {{"reader", report.reader}, {"reader_reason", report.reader_reason}},
       report.reader == "uring" ? Fact::Style::kGood : Fact::Style::kPlain},
      {"memlock",
       memlock ? MemoryText(*memlock) : "no limit",
       {{"memlock_bytes", ValueOrNull(memlock.has_value(), memlock.value_or(0))}}},
      {"simd",
       report.simd.starts_with("AVX3") ? "AVX-512 (Highway's " + report.simd + ")" : report.simd,
       {{"simd", report.simd}}},
      LibrariesFact(report),
  };
}

Facts CudaFacts(const DoctorReport& report) {
  const CudaReport& cuda = report.cuda;
  const auto& visible = report.visible_devices;
  const std::string driver = cuda.driver == 0 ? "none" : "CUDA " + Version(cuda.driver);
  // A fact without text is only in the JSON object.
  return {
      {"built with",
       cuda.built ? "CUDA " + Version(cuda.runtime) : "",
       {{"built", cuda.built}, {"runtime", ValueOrNull(cuda.runtime > 0, Version(cuda.runtime))}}},
      {"driver",
       cuda.built ? fmt::format("{}; CUDA {} is the least that is needed", driver,
                                Version(cuda.min_driver))
                  : "",
       {{"least_driver", ValueOrNull(cuda.min_driver > 0, Version(cuda.min_driver))},
        {"driver", ValueOrNull(cuda.driver > 0, Version(cuda.driver))}}},
      {"visible",
       visible ? fmt::format("CUDA_VISIBLE_DEVICES=\"{}\"", *visible) : "",
       {{"visible_devices", ValueOrNull(visible.has_value(), visible.value_or(""))}}},
      {"no device",
       cuda.why_not,
       {{"why_not", ValueOrNull(!cuda.why_not.empty(), cuda.why_not)}},
       Fact::Style::kMissing},
      {"pinned", "nothing: only a loader for a device pins memory", {{"registered_bytes", 0}}},
  };
}

std::string LinkText(const CudaReport::DeviceInfo& device) {
  if (device.link_gb_s == 0) return "unknown";
  std::string text = SpeedText(device.link_gb_s * 1e9) + " each way";
  if (device.best_link_gb_s > device.link_gb_s) {
    text +=
        fmt::format(" at present; {} when it is not idle", SpeedText(device.best_link_gb_s * 1e9));
  }
  return text;
}

Facts DeviceFacts(const CudaReport::DeviceInfo& device) {
  const std::string capability =
      fmt::format("{}.{}", device.capability / 10, device.capability % 10);
  const bool node_known = device.numa_node >= 0;
  return {
      {fmt::format("cuda:{}", device.ordinal),
       fmt::format("{}, {}, capability {}", device.name, MemoryText(device.memory_bytes),
                   capability),
       {{"ordinal", device.ordinal},
        {"name", device.name},
        {"memory_bytes", device.memory_bytes},
        {"capability", capability}},
       Fact::Style::kGood},
      {"",
       fmt::format("bus {}, NUMA node {}", device.bus,
                   node_known ? std::to_string(device.numa_node) : "unknown"),
       {{"bus", device.bus}, {"numa_node", ValueOrNull(node_known, device.numa_node)}}},
      {"",
       "link " + LinkText(device),
       {{"link_gb_s", ValueOrNull(device.link_gb_s > 0, device.link_gb_s)},
        {"best_link_gb_s", ValueOrNull(device.best_link_gb_s > 0, device.best_link_gb_s)}}},
  };
}

// Writes lines, with the codes of ECMA-48 for colour if it is wanted.
class Page {
 public:
  Page(bool colour, size_t columns) : colour_(colour), columns_(columns) {}

  void Head(const std::string& text) { text_ += Painted("1", text) + "\n"; }
  void Add(const Facts& facts) {
    for (const Fact& fact : facts) {
      if (fact.text.empty()) continue;
      const std::string text = cli::Hung(fact.text, kIndent, columns_);
      text_ += fmt::format("  {:<15}{}\n", fact.name, Painted(CodeOf(fact.style), text));
    }
  }
  std::string Take() { return std::move(text_); }

 private:
  static const char* CodeOf(Fact::Style style) {
    if (style == Fact::Style::kPlain) return "";
    return style == Fact::Style::kGood ? "32" : "33";
  }
  std::string Painted(std::string_view code, const std::string& text) const {
    return colour_ && !code.empty() ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : text;
  }

  static constexpr size_t kIndent = 17;
  const bool colour_;
  const size_t columns_;
  std::string text_;
};

Json MembersOf(const Facts& facts) {
  Json members = Json::object();
  for (const Fact& fact : facts) members.update(fact.members);
  return members;
}

}  // namespace

std::string DoctorText(const DoctorReport& report, bool colour, const cli::PageWidth& width) {
  Page page(colour, width.rows);
  page.Head("stoker " + report.version);
  page.Add(MachineFacts(report));
  page.Head("cuda");
  page.Add(CudaFacts(report));
  for (const CudaReport::DeviceInfo& device : report.cuda.devices) page.Add(DeviceFacts(device));
  return page.Take();
}

std::string DoctorJson(const DoctorReport& report) {
  Json json = {{"version", report.version}};
  json.update(MembersOf(MachineFacts(report)));
  json["cuda"] = MembersOf(CudaFacts(report));
  json["cuda"]["devices"] = Json::array();
  for (const CudaReport::DeviceInfo& device : report.cuda.devices) {
    json["cuda"]["devices"].push_back(MembersOf(DeviceFacts(device)));
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace stoker
