#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "bindings/cli/outcome.h"
#include "bindings/cli/text/report_text.h"
#include "bindings/cli/verify/verify.h"
#include "core/result/plural.h"
#include "core/result/secrets.h"
#include "core/result/try.h"
#include "core/result/utf8.h"

namespace stoker {

namespace {

using VerifyJsonObject = nlohmann::ordered_json;
constexpr size_t kJsonPiece = 1 << 20;  // of JSON, written at a time

std::string PathOfSample(const SampleSource& source, uint64_t id, uint32_t piece = 0) {
  const ByteRange range = source.RangeOfAny(id, piece);
  std::string path;
  source.PathOf(range.file, path);
  return path;
}

// Returns "a.jpg at byte 812: truncated: no end-of-image marker. Remove the file."; for a
// photograph in a packed set "out/00000.stoker at byte 812 (cat/a.jpg): …".
std::string BadLine(const SampleSource& source, const BadSample& sample) {
  std::string line = PathOfSample(source, sample.id, sample.piece);
  if (sample.offset) line += fmt::format(" at byte {}", *sample.offset);
  std::string name;
  sample.piece == 0 ? source.NameOf(sample.id, name)
                    : source.NameOfPiece(sample.id, sample.piece, name);
  if (!name.empty()) line += fmt::format(" ({})", name);
  line += fmt::format(": {}: {}.", WordsOf(sample.fault), sample.cause);
  if (!sample.advice.empty()) line += fmt::format(" {}.", sample.advice);
  return Printable(WithoutSecrets(line));
}

std::string BadJson(const SampleSource& source, const BadSample& sample) {
  VerifyJsonObject json = {
      {"id", sample.id},
      {"path", WithoutSecrets(PathOfSample(source, sample.id, sample.piece))},
      {"offset", sample.offset ? VerifyJsonObject(*sample.offset) : VerifyJsonObject(nullptr)},
      {"class", NameOf(sample.fault)},
      {"cause", WithoutSecrets(sample.cause)},
      {"advice", sample.advice}};
  std::string name;
  sample.piece == 0 ? source.NameOf(sample.id, name)
                    : source.NameOfPiece(sample.id, sample.piece, name);
  if (!name.empty()) json["name"] = name;
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Returns all members but the bad samples.
VerifyJsonObject SummaryJson(const SampleSource& source, const VerifyReport& report) {
  VerifyJsonObject classes = VerifyJsonObject::object();
  for (int fault = 0; fault < kSampleFaults; ++fault) {
    classes[NameOf(static_cast<SampleFault>(fault))] =
        report.bad.counts()[static_cast<size_t>(fault)];
  }
  const SkippedFiles skipped = source.Skipped();
  VerifyJsonObject extensions = VerifyJsonObject::object();
  for (const auto& [extension, files] : skipped.by_extension) extensions[extension] = files;
  VerifyJsonObject json = {{"source", source.Describe()},
                           {"samples", source.size()},
                           {"checked", report.checked},
                           {"interrupted", report.interrupted},
                           {"bad_by_class", std::move(classes)},
                           {"no_end_marker", report.no_end_marker},
                           {"accepted_truncated", report.accepted_truncated},
                           {"boxes_without_area", report.boxes_without_area},
                           {"skipped", std::move(extensions)},
                           {"seconds", report.seconds}};
  if (report.boxes_without_area > 0) {
    json["first_without_area"] = WithoutSecrets(PathOfSample(source, report.first_without_area));
  }
  if (report.error) {
    json.update(
        VerifyJsonObject::parse(cli::ErrorJson(*report.error, cli::ExitCodeOf(*report.error))));
  }
  return json;
}

}  // namespace

std::string VerifyText(const SampleSource& source, const VerifyReport& report, size_t most_listed,
                       const cli::PageWidth& width) {
  const std::string all = report.interrupted ? fmt::format(" of {}", source.size()) : "";
  ReportText text(width);
  text.Add("", fmt::format("{}: {}{} {} checked in {:.2f} s{}", Printable(source.Describe()),
                           report.checked, all, Plural(source.size(), "sample", "samples"),
                           report.seconds, report.interrupted ? ", then interrupted" : ""));
  const SkippedFiles skipped = source.Skipped();
  if (!skipped.empty()) text.Add("  skipped: ", Printable(skipped.Warning()));
  if (report.no_end_marker > 0) {
    text.Add(
        "  without an end marker, but complete: ",
        fmt::format("{} {}", report.no_end_marker, Plural(report.no_end_marker, "JPEG", "JPEGs")));
  }
  if (report.accepted_truncated > 0) {
    text.Add("  truncated, and accepted: ",
             fmt::format("{} {}", report.accepted_truncated,
                         Plural(report.accepted_truncated, "JPEG", "JPEGs")));
  }
  if (report.boxes_without_area > 0) {
    const std::string path = WithoutSecrets(PathOfSample(source, report.first_without_area));
    text.Add("  without an area in their image: ",
             fmt::format("{} {}; the first one is of {}", report.boxes_without_area,
                         Plural(report.boxes_without_area, "box", "boxes"), Printable(path)));
  }
  if (report.bad.empty()) {
    text.Add("  bad: none");
    return text.Take();
  }
  text.Add("  bad: ", fmt::format("{} ({})", report.bad.size(), TextOf(report.bad.counts())));
  const size_t listed = std::min(most_listed, report.bad.size());
  for (size_t i = 0; i < listed; ++i) text.Add("  ", BadLine(source, report.bad[i]));
  if (report.bad.size() > listed) {
    text.Add(fmt::format("  and {} more (--json has all)", report.bad.size() - listed));
  }
  return text.Take();
}

Status WriteVerifyJson(const SampleSource& source, const VerifyReport& report,
                       const TextWriter& write) {
  std::string piece =
      SummaryJson(source, report).dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
  piece.resize(piece.size() - 2);  // the line feed and the brace at its end
  piece += ",\n  \"bad\": [";
  for (size_t i = 0; i < report.bad.size(); ++i) {
    piece += (i == 0 ? "\n    " : ",\n    ") + BadJson(source, report.bad[i]);
    if (piece.size() < kJsonPiece) continue;
    TRY(write(piece));
    piece.clear();
  }
  return write(piece + (report.bad.empty() ? "]\n}\n" : "\n  ]\n}\n"));
}

}  // namespace stoker
