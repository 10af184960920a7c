#include "io/index/image_list_sections.h"

#include "core/result/try.h"
#include "io/index/image_list_check.h"

namespace stoker {

// Each column is checked before it determines the size of the next one.
Status ReadImageList(const SectionFile& file, ImageList& list, ListedNames names) {
  TRY(file.Require({sections::kFolders, sections::kPaths, sections::kFiles, sections::kNames}));
  ListCheck check(list);
  const auto any = [](uint64_t) { return true; };
  TRY(file.ReadColumn(sections::kFolders, list.folders, any,
                      [&](size_t begin) { return check.Folders(begin); }));
  TRY(file.ReadColumn(
      sections::kPaths, list.paths, [&](uint64_t n) { return n == check.path_bytes(); },
      [&](size_t begin) { return check.Paths(begin); }));
  if (!check.TakeClasses()) return file.Damaged("its folders");
  TRY(file.ReadColumn(sections::kFiles, list.files, any,
                      [&](size_t begin) { return check.Files(begin); }));
  if (!check.FilesEnd()) return file.Damaged("its list of files");
  TRY(file.ReadColumn(
      sections::kNames, list.names, [&](uint64_t n) { return n == check.name_bytes(); },
      [&](size_t begin) { return names == ListedNames::kPaths || check.Names(begin); }));
  if (names == ListedNames::kPaths) return {};
  return check.NamesEnd() ? Status() : file.Damaged("its list of files");
}

Status AddImageList(const ImageList& list, SectionFileWriter& writer) {
  TRY(writer.Add(sections::kFolders, sections::ColumnBytes(list.folders)));
  TRY(writer.Add(sections::kPaths, sections::ColumnBytes(list.paths)));
  TRY(writer.Add(sections::kFiles, sections::ColumnBytes(list.files)));
  return writer.Add(sections::kNames, sections::ColumnBytes(list.names));
}

}  // namespace stoker
