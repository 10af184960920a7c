#include "io/packed/packed_merge.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "core/result/try.h"
#include "io/packed/piece_fields.h"
#include "io/ranges/path_source.h"

namespace stoker {
namespace {

// "a/b" of "a/b/c.jpg"; empty of a file that is directly in the root.
std::string_view FolderOf(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

std::string_view NameOf(std::string_view path) { return path.substr(path.rfind('/') + 1); }

std::string_view ClassOf(std::string_view path) {
  const size_t slash = path.find('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

// The order that image_folder.h documents.
bool ComesBefore(const MergedSample& a, const MergedSample& b) {
  const auto order = [](std::string_view path) {
    return std::tuple(ClassOf(path), FolderOf(path), NameOf(path));
  };
  return order(a.path) < order(b.path);
}

// Adds files to folders, in their order.
class ListMaker {
 public:
  void Add(std::string_view path) {
    const std::string_view top = ClassOf(path);
    if (!top.empty() && (classes_.empty() || classes_.back() != top)) {
      classes_.emplace_back(top);
      AddFolder(top);  // also if it has no images itself: that is where a class begins
    }
    const std::string_view folder = FolderOf(path);
    if (folders_.empty() || folders_.back().path != folder) AddFolder(folder);
    NameList& names = folders_.back().files;
    names.bytes += NameOf(path);
    names.ends.push_back(static_cast<uint32_t>(names.bytes.size()));
  }

  ImageList Take() && { return ImageList::Of(std::move(classes_), std::move(folders_)); }

 private:
  void AddFolder(std::string_view path) {
    const size_t top = classes_.empty() ? 0 : classes_.size() - 1;
    folders_.push_back({.path = std::string(path), .top = static_cast<uint32_t>(top)});
  }

  std::vector<std::string> classes_;
  std::vector<ListedFolder> folders_;
};

}  // namespace

Result<MergedSet> MergeShards(std::vector<MergedSample> samples) {
  std::ranges::sort(samples, ComesBefore);
  const bool flat = ClassOf(samples.front().path).empty();  // no class comes before all others
  if (flat && !ClassOf(samples.back().path).empty()) {
    return Error{.code = Code::kInvalidArgument,
                 .cause = "'" + std::string(samples.front().path) +
                          "' would belong to no class: others are in class folders ('" +
                          std::string(samples.back().path) + "')",
                 .advice = "Pack them into a folder of their own"};
  }
  MergedSet merged;
  merged.samples.reserve(samples.size());
  ListMaker list;
  for (const MergedSample& sample : samples) {
    list.Add(sample.path);
    merged.samples.push_back(sample.sample);
  }
  merged.list = std::move(list).Take();
  return merged;
}

Result<MergedSet> MergePieces(const std::vector<packed_set::PieceField>& fields,
                              const std::vector<MergedSample>& pieces) {
  std::vector<const MergedSample*> samples;  // their first pieces
  uint64_t path_bytes = 0;
  for (size_t i = 0; i < pieces.size(); i += fields.size()) {
    samples.push_back(&pieces[i]);
    path_bytes += pieces[i].path.size();
  }
  if (path_bytes > std::numeric_limits<uint32_t>::max()) {
    return Error{Code::kResourceExhausted, "the paths of the images take 4 GiB or more"};
  }
  std::ranges::sort(samples, {}, &MergedSample::path);
  MergedSet merged;
  merged.further.fields = fields;
  std::vector<ListedFolder> root(1);
  PathTable images;
  for (const MergedSample* const sample : samples) {
    NameList& names = root[0].files;
    names.bytes += sample->path;
    names.ends.push_back(static_cast<uint32_t>(names.bytes.size()));
    images.Add(sample->path);
    merged.samples.push_back(sample->sample);
  }
  merged.list = ImageList::Of({}, std::move(root));
  FilesOptions files;
  const std::vector<Field> all = FieldsOf(fields);
  for (size_t piece = 1; piece < fields.size(); ++piece) {
    FurtherImages& further = files.further.emplace_back();
    further = {.name = all[piece].name,
               .kind = all[piece].kind,
               .dtype = all[piece].dtype,
               .fill = all[piece].fill,
               .paths = {}};
    for (const MergedSample* const sample : samples) {
      further.paths.Add(sample[piece].path);
      merged.further.paths.Add(sample[piece].path);
      merged.further.samples.push_back(sample[piece].sample);
    }
  }
  ASSIGN_OR_RETURN(const std::shared_ptr<const SampleSource> source,
                   Files(std::move(images), std::move(files)));
  merged.further.fingerprint = source->Fingerprint();
  return merged;
}

}  // namespace stoker
