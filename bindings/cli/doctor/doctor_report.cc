#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "bindings/cli/doctor/doctor.h"

namespace stoker {

namespace {

using Json = nlohmann::ordered_json;

std::string Gibibytes(uint64_t bytes) {
  return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (uint64_t{1} << 30));
}

// Returns "12.4" for 12040.
std::string Version(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

std::string Capability(int capability) {
  return fmt::format("{}.{}", capability / 10, capability % 10);
}

class Lines {
 public:
  void Add(const char* name, const std::string& value) {
    text_ += fmt::format("  {:<15}{}\n", name, value);
  }
  void Head(const std::string& text) { text_ += text + "\n"; }
  std::string Take() { return std::move(text_); }

 private:
  std::string text_;
};

std::string LinkText(const CudaReport::Found& device) {
  if (device.link_gb_s == 0) return "unknown";
  std::string text = fmt::format("{:.1f} GB/s each way", device.link_gb_s);
  if (device.best_link_gb_s > device.link_gb_s) {
    text += fmt::format(" at present; {:.1f} when it is not idle", device.best_link_gb_s);
  }
  return text;
}

void AddCuda(const DoctorReport& report, Lines& lines) {
  const CudaReport& cuda = report.cuda;
  lines.Head("cuda");
  if (cuda.built) {
    lines.Add("built with", "CUDA " + Version(cuda.runtime));
    lines.Add("driver", fmt::format("{}; CUDA {} is the least that is needed",
                                    cuda.driver == 0 ? "none" : "CUDA " + Version(cuda.driver),
                                    Version(cuda.min_driver)));
  }
  if (report.visible_devices) {
    lines.Add("visible", fmt::format("CUDA_VISIBLE_DEVICES=\"{}\"", *report.visible_devices));
  }
  if (!cuda.why_not.empty()) lines.Add("no device", cuda.why_not);
  for (const CudaReport::Found& device : cuda.devices) {
    const std::string name = fmt::format("cuda:{}", device.ordinal);
    lines.Add(name.c_str(),
              fmt::format("{}, {}, capability {}", device.name, Gibibytes(device.memory_bytes),
                          Capability(device.capability)));
    lines.Add("", fmt::format("bus {}, NUMA node {}", device.bus,
                              device.numa_node < 0 ? "unknown" : std::to_string(device.numa_node)));
    lines.Add("", "link " + LinkText(device));
  }
  lines.Add("registered", "nothing: only a loader for a device pins memory");
}

// Returns null if unknown.
Json Known(bool known, Json value) { return known ? std::move(value) : Json(); }

Json CudaJson(const DoctorReport& report) {
  const CudaReport& cuda = report.cuda;
  Json devices = Json::array();
  for (const CudaReport::Found& device : cuda.devices) {
    devices.push_back({{"ordinal", device.ordinal},
                       {"name", device.name},
                       {"memory_bytes", device.memory_bytes},
                       {"capability", Capability(device.capability)},
                       {"bus", device.bus},
                       {"link_gb_s", Known(device.link_gb_s > 0, device.link_gb_s)},
                       {"best_link_gb_s", Known(device.best_link_gb_s > 0, device.best_link_gb_s)},
                       {"numa_node", Known(device.numa_node >= 0, device.numa_node)}});
  }
  return {{"built", cuda.built},
          {"runtime", Known(cuda.runtime > 0, Version(cuda.runtime))},
          {"least_driver", Known(cuda.min_driver > 0, Version(cuda.min_driver))},
          {"driver", Known(cuda.driver > 0, Version(cuda.driver))},
          {"visible_devices",
           Known(report.visible_devices.has_value(), report.visible_devices.value_or(""))},
          {"why_not", Known(!cuda.why_not.empty(), cuda.why_not)},
          {"registered_bytes", 0},
          {"devices", std::move(devices)}};
}

}  // namespace

std::string DoctorText(const DoctorReport& report) {
  Lines lines;
  lines.Head("stoker " + report.version);
  lines.Add("compiler", fmt::format("{}, {}", report.compiler, report.build));
  lines.Add("system", report.kernel);
  lines.Add("cores", fmt::format("{} allotted", report.cores));
  lines.Add("memory",
            fmt::format("{} available, {} of them the default budget",
                        Gibibytes(report.available_memory), Gibibytes(report.memory_budget)));
  lines.Add("reader", report.reader_reason);
  lines.Add("memlock", report.memlock_bytes ? fmt::format("{} KiB", *report.memlock_bytes / 1024)
                                            : "no limit");
  lines.Add("simd", report.simd);
  std::string libraries;
  for (const auto& [name, version] : report.libraries) {
    libraries += fmt::format("{}{} {}", libraries.empty() ? "" : ", ", name, version);
  }
  lines.Add("libraries", libraries);
  AddCuda(report, lines);
  return lines.Take();
}

std::string DoctorJson(const DoctorReport& report) {
  Json libraries = Json::object();
  for (const auto& [name, version] : report.libraries) libraries[name] = version;
  const Json json = {
      {"version", report.version},
      {"compiler", report.compiler},
      {"build", report.build},
      {"system", report.kernel},
      {"cores", report.cores},
      {"available_memory_bytes", report.available_memory},
      {"memory_budget_bytes", report.memory_budget},
      {"reader", report.reader},
      {"reader_reason", report.reader_reason},
      {"memlock_bytes", Known(report.memlock_bytes.has_value(), report.memlock_bytes.value_or(0))},
      {"simd", report.simd},
      {"libraries", std::move(libraries)},
      {"cuda", CudaJson(report)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace stoker
