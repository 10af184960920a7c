#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bindings/cli/command.h"
#include "bindings/cli/command/arguments.h"
#include "bindings/cli/open_samples.h"
#include "bindings/cli/outcome.h"
#include "bindings/cli/pack/check_set.h"
#include "bindings/cli/pack/list_set.h"
#include "bindings/cli/pack/pack_folder.h"
#include "bindings/cli/text/report_text.h"
#include "bindings/cli/text/terminal.h"
#include "bindings/cli/watched_work.h"
#include "core/result/plural.h"
#include "core/result/try.h"
#include "core/result/utf8.h"
#include "io/packed/open_packed.h"

namespace stoker::cli {

namespace {

using PackJsonObject = nlohmann::ordered_json;

struct PackArguments {
  std::string directory, out;
  PackOptions options;
  int64_t threads = 0;
  int64_t list_damaged = 100;
  std::vector<std::string> source_options;
  bool verify = false, list = false, json = false;
};

constexpr const char* kPackFooter =
    R"(Packs the images of DIR into a few large files, which random crops read faster and decode for
less CPU; and no pixel is lost: `stoker unpack` gives back every file. Each JPEG and PNG is packed,
restored and compared. A JPEG that does not come back to the byte, and every other format, is stored as
it is. A PNG of an encoder whose compression cannot be reproduced is counted as `equal only`: `stoker
unpack` writes one with the same pixels and metadata, unless --exact stores its file, too. The others
come back to the byte with the version of zlib that packed them, and with the same pixels with any.

OUT takes the place of DIR: order, labels, classes and pixels are the same, and so are batches, digests
and the states of loaders. DIR is not changed, and not needed any more.

A run that was interrupted, or failed, is continued by the same command: shards that are complete stay.
So does every later run: shards are never changed. New samples of DIR, or those of another folder,
are added with --append: then OUT is as if all had been in one folder, in its order. Numbers of samples
and of classes may change by that, as in the folder.

With --source-option masks=MASKS, each image of DIR has a mask below MASKS (`stoker.masks`), and OUT has
both. PNG masks are packed as the runs of their rows, and their values are compared.

Examples:
  stoker pack photos/train packed/train
  stoker pack images packed/train --source-option masks=masks --source-option suffix=_mask
  stoker pack more/train packed/train --append
  stoker pack --verify packed/train
  stoker pack --list packed/train
  stoker bench packed/train

Exit codes: 0 done; 1 the folder is missing or has no image, a sample cannot be read, --verify found
damage; 2 a bad option; 3 the system (disk full, permission, memory, I/O, OUT has something else in it);
130 interrupted.)";

double ShareOf(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

std::string PackText(const PackReport& report) {
  const std::string speed =
      report.added == 0
          ? ""
          : fmt::format(" ({:.0f} a second)", static_cast<double>(report.added) / report.seconds);
  ReportText text(WidthOfPage());
  text.Add("", fmt::format("{}: {} added in {:.1f} s{}", Printable(report.source),
                           SamplesText(report.added), report.seconds, speed));
  text.Add(
      "  ",
      fmt::format("{}: {} in {} {}, {}: {:.1f} % of the files' {}", Printable(report.out),
                  SamplesText(report.samples, report.images), report.shards,
                  Plural(report.shards, "shard", "shards"), SizeText(report.set_bytes),
                  100 * ShareOf(report.set_bytes, report.file_bytes), SizeText(report.file_bytes)));
  text.Add(fmt::format("  packed {}, stored as they are {}", report.packed,
                       report.images - report.packed));
  if (report.equal > 0) text.Add("    ", EqualPngs{.count = report.equal}.Text());
  for (const auto& [reason, count] : report.as_they_are) {
    text.Add("    ", fmt::format("as they are: {} ({})", count, Printable(reason)));
  }
  return text.Take();
}

std::string PackJson(const PackReport& report) {
  PackJsonObject skipped = PackJsonObject::object();
  for (const auto& [extension, files] : report.skipped.by_extension) skipped[extension] = files;
  const PackJsonObject json = {{"source", report.source},
                               {"out", report.out},
                               {"added", report.added},
                               {"added_bytes", report.added_bytes},
                               {"as_they_are", report.as_they_are},
                               {"samples", report.samples},
                               {"images", report.images},
                               {"packed", report.packed},
                               {"equal", report.equal},
                               {"file_bytes", report.file_bytes},
                               {"set_bytes", report.set_bytes},
                               {"share", ShareOf(report.set_bytes, report.file_bytes)},
                               {"shards", report.shards},
                               {"skipped", std::move(skipped)},
                               {"seconds", report.seconds}};
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string CheckText(const SetCheck& check) {
  ReportText text(WidthOfPage());
  text.Add("", fmt::format("{}: {} of {} restored and compared in {:.1f} s",
                           Printable(check.source), SamplesText(check.samples, check.images),
                           SizeText(check.bytes), check.seconds));
  text.Add(
      fmt::format("  damaged: {}", check.damaged == 0 ? "none" : std::to_string(check.damaged)));
  if (check.equal.count > 0) text.Add("  ", check.equal.Text());
  for (const Error& error : check.first) text.Add("  ", Printable(error.Message(FlagOf)));
  return text.Take();
}

std::string CheckJson(const SetCheck& check) {
  PackJsonObject first = PackJsonObject::array();
  for (const Error& error : check.first) {
    first.push_back(
        {{"file", error.file},
         {"offset", error.offset ? PackJsonObject(*error.offset) : PackJsonObject(nullptr)},
         {"cause", error.cause},
         {"advice", error.Advice(FlagOf)}});
  }
  const PackJsonObject json = {{"source", check.source},     {"samples", check.samples},
                               {"images", check.images},     {"bytes", check.bytes},
                               {"equal", check.equal.count}, {"other_zlib", check.equal.other_zlib},
                               {"damaged", check.damaged},   {"damaged_list", std::move(first)},
                               {"seconds", check.seconds}};
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

Result<int> Verify(const PackArguments& given) {
  WatchedWork work;
  ASSIGN_OR_RETURN(const SetCheck check,
                   CheckSet(given.directory,
                            {.threads = static_cast<int>(given.threads),
                             .most_listed = static_cast<size_t>(given.list_damaged)},
                            work.progress()));
  TRY(Print(given.json ? CheckJson(check) : CheckText(check)));
  return check.damaged == 0 ? kExitOk : kExitData;
}

Result<int> List(const PackArguments& given) {
  ASSIGN_OR_RETURN(const std::shared_ptr<const PackedIndex> index,
                   OpenPackedIndex(given.directory));
  if (given.json) {
    TRY(WriteSetJson("packed(" + given.directory + ")", *index, &Print));
  } else {
    TRY(WriteSetText(*index, &Print));
  }
  return kExitOk;
}

// Lists the folder, or, with options of a source, what they make of it.
Result<FilesToPack> ListFiles(const PackArguments& given, int threads) {
  if (given.source_options.empty()) return FilesToPack::OfFolder(given.directory, threads);
  ASSIGN_OR_RETURN(const std::shared_ptr<const SampleSource> source,
                   OpenSamples(given.directory, "auto", given.source_options, threads));
  return FilesToPack::OfSource(*source);
}

Result<int> Pack(const PackArguments& given) {
  TRY(CheckIsFolder("pack", given.directory));
  PackOptions options = given.options;
  options.threads = static_cast<int>(given.threads);
  WatchedWork work;
  ASSIGN_OR_RETURN(const FilesToPack files, ListFiles(given, options.threads));
  ASSIGN_OR_RETURN(const PackReport report, PackFiles(files, given.out, options, work.progress()));
  WarnOfSplits(given.directory, report.classes);
  if (!report.skipped.empty()) Warn(report.skipped.Warning());
  if (report.equal > 0) Warn("not every PNG comes back to the byte: keep DIR, or use --exact");
  TRY(Print(given.json ? PackJson(report) : PackText(report)));
  return kExitOk;
}

Status CheckArguments(const PackArguments& given) {
  const auto wrong = [](const char* cause, const char* advice) {
    return Error{.code = Code::kInvalidArgument, .cause = cause, .advice = advice};
  };
  const bool looks = given.verify || given.list;
  if (given.verify && given.list) return wrong("--verify and --list exclude each other", "");
  if (looks && !given.out.empty()) {
    return wrong("with --verify and --list only one folder is given", "Give the packed set");
  }
  if (looks && given.options.append) return wrong("--append is for packing", "");
  if (looks && given.options.exact) return wrong("--exact is for packing", "");
  if (looks && !given.source_options.empty()) return wrong("--source-option is for packing", "");
  if (!looks && given.out.empty()) {
    return wrong("OUT is missing, the folder to write", "`stoker help pack` explains it");
  }
  return {};
}

Result<int> RunPackCommand(const PackArguments& given) {
  TRY(CheckArguments(given));
  Result<int> code = given.verify ? Verify(given) : given.list ? List(given) : Pack(given);
  if (code.ok()) return code;
  return Fail(code.error(), ExitCodeOf(code.error(), {given.out}), given.json);
}

}  // namespace

void AddPack(CLI::App& app, Command& chosen) {
  auto given = std::make_shared<PackArguments>();
  CLI::App* command =
      app.add_subcommand("pack", "Pack a folder without loss, to be read and cropped faster");
  command
      ->add_option("DIR", given->directory,
                   "folder of images, with a subfolder for each class; with --verify and "
                   "--list the packed set")
      ->type_name("")
      ->required();
  command->add_option("OUT", given->out, "folder for the packed set: new, or one to continue")
      ->type_name("");
  command->add_flag("--append", given->options.append,
                    "add the samples of DIR to those that OUT has");
  command->add_flag("--exact", given->options.exact,
                    "store the files of PNGs that are not restored to the byte, too");
  AddSourceOptions(*command, given->source_options);
  AddBytes(*command, "--shard-size", given->options.shard_bytes,
           "size of a shard, after which the next one begins");
  command->add_flag("--verify", given->verify,
                    "check every byte of a packed set, and restore every sample");
  command->add_flag("--list", given->list, "list the samples of a packed set");
  AddNumber(*command, "--list-damaged", given->list_damaged, {0, 1'000'000'000},
            "number of damaged samples to name, with --verify");
  AddNumber(*command, "--threads", given->threads, {0, 256},
            "packing threads; 0 means the cores allotted");
  command->add_flag("--json", given->json, "print one JSON object on stdout and nothing else");
  command->footer(kPackFooter);
  command->callback([given, &chosen] { chosen = [given] { return RunPackCommand(*given); }; });
}

}  // namespace stoker::cli
