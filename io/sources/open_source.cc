#include "io/sources/open_source.h"

#include <algorithm>

#include "io/sources/image_folder.h"

namespace stoker {

namespace {

using Opened = Result<std::shared_ptr<const SampleSource>>;

// A source that only the process that made it has.
Error Elsewhere(const std::string& samples, const char* advice) {
  return {.code = Code::kFailedPrecondition,
          .cause = samples +
                   " in the memory of the process that made the loader; this is another one, or "
                   "the loader is gone",
          .advice = advice};
}

std::vector<SourceRow> MakeTable() {
  return {
      {.kind = "image_folder",
       .arguments = {{.name = "directory"},
                     {.name = "crop_index", .standard = "auto", .words = {"auto", "off"}}},
       .open = [](const SourceArguments& given, int threads) -> Opened {
         using CropIndex = ImageFolderOptions::CropIndex;
         const std::string& index = given.at("crop_index");
         const CropIndex kind = index == "auto"  ? CropIndex::kAuto
                                : index == "off" ? CropIndex::kOff
                                                 : CropIndex::kFile;
         return ImageFolder(given.at("directory"),
                            {.threads = threads, .crop_index = kind, .crop_index_file = index});
       }},
      {.kind = "arrays",
       .arguments = {{.name = "key", .standard = "", .is_path = false}},
       .open = [](const SourceArguments& /*given*/, int /*threads*/) -> Opened {
         return Elsewhere("these arrays are", "Keep the loader, make it here, or read from files");
       }},
      {.kind = "files",
       .arguments = {{.name = "key", .standard = "", .is_path = false}},
       .open = [](const SourceArguments& /*given*/, int /*threads*/) -> Opened {
         return Elsewhere("this list of files is", "Keep the loader, or make it here");
       }},
      {.kind = "dataset",
       .arguments = {{.name = "key", .standard = "", .is_path = false}},
       .open = [](const SourceArguments& /*given*/, int /*threads*/) -> Opened {
         return Elsewhere("this dataset is", "Keep the loader, or make it here");
       }},
  };
}

}  // namespace

std::span<const SourceRow> AllSources() {
  static const std::vector<SourceRow> table = MakeTable();
  return table;
}

Result<std::shared_ptr<const SampleSource>> OpenSource(std::string_view kind,
                                                       SourceArguments arguments, int threads) {
  const auto row =
      std::ranges::find_if(AllSources(), [kind](const SourceRow& r) { return r.kind == kind; });
  for (const SourceArgument& argument : row->arguments) {
    if (argument.standard != nullptr) arguments.emplace(argument.name, argument.standard);
  }
  return row->open(arguments, threads);
}

}  // namespace stoker
