#include "io/manifest/manifest.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "core/result/try.h"
#include "io/annotations/object_columns.h"
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

// Takes the masks from the end of the columns.
void AddMasks(const ManifestOptions& options, ManifestTable& table, FilesOptions& files) {
  const size_t first = table.columns.size() - table.masks;
  for (const KeyedColumn& mask : options.keyed) {
    if (!mask.is_mask()) continue;
    const ArrayColumn paths = table.columns[first + files.further.size()].View();
    FurtherImages& further = files.further.emplace_back();
    further.name = mask.field.name;
    further.dtype = mask.field.dtype;
    further.fill = mask.field.fill;
    const auto* const texts = static_cast<const std::string_view*>(paths.data);
    for (uint64_t row = 0; row < paths.samples; ++row) further.paths.Add(texts[row]);
  }
  while (table.columns.size() > first) table.columns.pop_back();
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
  files.images = ImageNumbers(std::exchange(table.ends, {}));
  files.root = options.root.empty() ? FolderOf(path) : options.root;
  files.description = "manifest(" + path + ")";
  const auto kept = std::make_shared<ManifestTable>(std::move(table));
  if (kept->has_label) files.class_names = kept->columns.front().NumberClasses();
  AddMasks(options, *kept, files);
  for (const ValueColumn& column : kept->columns) files.columns.push_back(column.View());
  ASSIGN_OR_RETURN(const std::vector<ArrayColumn> objects,
                   FinishObjects(kept->objects, kept->has_label, path, files.class_names));
  files.columns.insert(files.columns.end(), objects.begin(), objects.end());
  files.owner = kept;
  Result<std::shared_ptr<const SampleSource>> source =
      Files(std::exchange(kept->paths, {}), std::move(files));
  if (!source.ok()) return Error(source.error()).WithFile(path);
  return source;
}

bool IsManifest(std::string_view path) { return FormOf(path) != nullptr; }

}  // namespace stoker
