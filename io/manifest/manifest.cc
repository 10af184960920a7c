#include "io/manifest/manifest.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "core/result/try.h"
#include "io/manifest/manifest_table.h"
#include "io/ranges/path_source.h"
#include "io/remote/object_url.h"

namespace stoker {

namespace {

struct Form {
  std::string_view ending;
  Result<ManifestTable> (*read)(const std::string& path, const ManifestOptions& options);
};

constexpr std::array kForms = {
    Form{".csv",
         [](const std::string& path, const ManifestOptions& options) {
           return ReadCsvManifest(path, ',', options);
         }},
    Form{".tsv",
         [](const std::string& path, const ManifestOptions& options) {
           return ReadCsvManifest(path, '\t', options);
         }},
    Form{".jsonl", &ReadJsonManifest},
    Form{".ndjson", &ReadJsonManifest},
};

const Form* FormOf(std::string_view path) {
  path = BeforeQuery(path);
  const auto ends_with = [path](const Form& form) {
    return path.size() > form.ending.size() &&
           std::ranges::equal(path.substr(path.size() - form.ending.size()), form.ending,
                              [](unsigned char a, char b) { return std::tolower(a) == b; });
  };
  const auto* const found = std::ranges::find_if(kForms, ends_with);
  return found == kForms.end() ? nullptr : found;
}

// Returns the folder with the slash at its end; empty means the working folder.
std::string FolderOf(std::string_view path) {
  path = BeforeQuery(path);
  return std::string(path.substr(0, path.rfind('/') + 1));
}

}  // namespace

Result<std::shared_ptr<const SampleSource>> Manifest(const std::string& path,
                                                     const ManifestOptions& options) {
  const Form* const form = FormOf(path);
  if (form == nullptr) {
    return Error{.code = Code::kInvalidArgument,
                 .cause = "the name does not end as a manifest's",
                 .file = path,
                 .advice =
                     "Manifests are .csv, .tsv or .jsonl files; from Python also local "
                     ".parquet files"};
  }
  ASSIGN_OR_RETURN(ManifestTable table, form->read(path, options));
  FilesOptions files;
  files.root = options.root.empty() ? FolderOf(path) : options.root;
  files.description = "manifest(" + path + ")";
  const auto columns = std::make_shared<std::vector<ValueColumn>>(std::move(table.columns));
  if (table.has_label) files.class_names = columns->front().NumberClasses();
  for (const ValueColumn& column : *columns) files.columns.push_back(column.View());
  files.owner = columns;
  Result<std::shared_ptr<const SampleSource>> source =
      Files(std::move(table.paths), std::move(files));
  if (!source.ok()) return Error(source.error()).WithFile(path);
  return source;
}

bool IsManifest(std::string_view path) { return FormOf(path) != nullptr; }

}  // namespace stoker
