#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "bindings/cli/command.h"
#include "bindings/cli/command/arguments.h"
#include "bindings/cli/outcome.h"
#include "bindings/cli/text/report_text.h"
#include "bindings/cli/text/terminal.h"
#include "bindings/cli/unpack/unpack_set.h"
#include "bindings/cli/watched_work.h"
#include "core/result/try.h"
#include "core/result/utf8.h"

namespace stoker::cli {

namespace {

struct UnpackArguments {
  std::string set, out;
  int64_t threads = 0;
  bool json = false;
};

constexpr const char* kUnpackFooter =
    R"(Writes every sample of a packed set to a file, under the path and with the bytes that it had; a
sample whose checksum is not that of the file that was packed ends it. PNGs whose compression cannot be
reproduced, by this version of zlib or by any, are compressed again, and counted: they have the same
pixels and metadata. DIR must be new or empty, and nothing is written outside of it.

Example:
  stoker unpack packed/train photos/train

Exit codes: 0 done; 1 the set is missing or damaged; 2 a bad option; 3 the system (disk full,
permission, memory, I/O, DIR is not empty); 130 interrupted.)";

std::string UnpackText(const UnpackReport& report) {
  ReportText text(WidthOfPage());
  const std::string files = SamplesText(report.samples, report.files);
  text.Add("", fmt::format("{}: {} of {} written to {} in {:.1f} s", Printable(report.source),
                           files, SizeText(report.bytes), Printable(report.out), report.seconds));
  if (report.equal.count > 0) text.Add("  ", report.equal.Text());
  return text.Take();
}

std::string UnpackJson(const UnpackReport& report) {
  const nlohmann::ordered_json json = {
      {"source", report.source},     {"out", report.out},
      {"files", report.files},       {"bytes", report.bytes},
      {"equal", report.equal.count}, {"other_zlib", report.equal.other_zlib},
      {"seconds", report.seconds}};
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

Result<int> Unpack(const UnpackArguments& given) {
  WatchedWork work;
  ASSIGN_OR_RETURN(
      const UnpackReport report,
      UnpackSet(given.set, given.out, static_cast<int>(given.threads), work.progress()));
  TRY(Print(given.json ? UnpackJson(report) : UnpackText(report)));
  return kExitOk;
}

Result<int> RunUnpackCommand(const UnpackArguments& given) {
  Result<int> code = Unpack(given);
  if (code.ok()) return code;
  return Fail(code.error(), ExitCodeOf(code.error(), {given.out}), given.json);
}

}  // namespace

void AddUnpack(CLI::App& app, Command& chosen) {
  auto given = std::make_shared<UnpackArguments>();
  CLI::App* command = app.add_subcommand("unpack", "Restore the files of a packed set");
  command->add_option("SET", given->set, "what `stoker pack` made")->type_name("")->required();
  command->add_option("DIR", given->out, "folder to write them to: new, or empty")
      ->type_name("")
      ->required();
  AddNumber(*command, "--threads", given->threads, {0, 256}, "threads; 0 means the cores allotted");
  command->add_flag("--json", given->json, "print one JSON object on stdout and nothing else");
  command->footer(kUnpackFooter);
  command->callback([given, &chosen] { chosen = [given] { return RunUnpackCommand(*given); }; });
}

}  // namespace stoker::cli
