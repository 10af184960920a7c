#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "bindings/cli/verify/verify.h"
#include "core/plural.h"
#include "core/utf8.h"

namespace stoker {

namespace {

using VerifyJsonObject = nlohmann::ordered_json;
using FaultCounts = std::array<uint64_t, kSampleFaults>;

FaultCounts CountFaults(const VerifyReport& report) {
  FaultCounts counts{};
  for (const BadSample& sample : report.bad) ++counts[static_cast<size_t>(sample.fault)];
  return counts;
}

const char* FaultName(size_t fault) { return NameOf(static_cast<SampleFault>(fault)); }

// "2 truncated, 1 unsupported".
std::string FaultShares(const VerifyReport& report) {
  const FaultCounts counts = CountFaults(report);
  std::string text;
  for (size_t fault = 0; fault < counts.size(); ++fault) {
    if (counts[fault] == 0) continue;
    if (!text.empty()) text += ", ";
    text += fmt::format("{} {}", counts[fault], FaultName(fault));
  }
  return text;
}

}  // namespace

std::string VerifyText(const VerifyReport& report, size_t most_listed) {
  std::string text =
      fmt::format("{}: {} {} decoded in {:.2f} s\n", Printable(report.source), report.checked,
                  Plural(report.checked, "sample", "samples"), report.seconds);
  if (!report.skipped.empty()) text += "  skipped: " + Printable(report.skipped.Warning()) + "\n";
  if (report.no_end_marker > 0) {
    fmt::format_to(std::back_inserter(text), "  without an end marker, but complete: {} {}\n",
                   report.no_end_marker, Plural(report.no_end_marker, "JPEG", "JPEGs"));
  }
  if (report.bad.empty()) return text + "  bad: none\n";
  fmt::format_to(std::back_inserter(text), "  bad: {} ({})\n", report.bad.size(),
                 FaultShares(report));
  const size_t listed = std::min(most_listed, report.bad.size());
  for (size_t i = 0; i < listed; ++i) {
    text += "  " + Printable(report.bad[i].error.ToString()) + "\n";
  }
  if (report.bad.size() > listed) {
    fmt::format_to(std::back_inserter(text), "  and {} more (--json has all)\n",
                   report.bad.size() - listed);
  }
  return text;
}

std::string VerifyJson(const VerifyReport& report) {
  VerifyJsonObject bad = VerifyJsonObject::array();
  for (const BadSample& sample : report.bad) {
    const Error& error = sample.error;
    bad.push_back(
        {{"id", sample.id},
         {"path", error.file},
         {"offset", error.offset ? VerifyJsonObject(*error.offset) : VerifyJsonObject(nullptr)},
         {"class", NameOf(sample.fault)},
         {"cause", error.cause},
         {"advice", error.advice}});
  }
  VerifyJsonObject classes = VerifyJsonObject::object();
  const FaultCounts counts = CountFaults(report);
  for (size_t fault = 0; fault < counts.size(); ++fault) classes[FaultName(fault)] = counts[fault];
  const VerifyJsonObject json = {{"source", report.source},
                                 {"checked", report.checked},
                                 {"bad", std::move(bad)},
                                 {"bad_by_class", std::move(classes)},
                                 {"no_end_marker", report.no_end_marker},
                                 {"seconds", report.seconds}};
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace stoker
