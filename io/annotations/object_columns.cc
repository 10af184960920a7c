#include "io/annotations/object_columns.h"

#include <memory>
#include <utility>

#include "core/hash/hash.h"
#include "core/result/try.h"

namespace stoker {

Result<std::vector<ArrayColumn>> FinishObjects(std::vector<ObjectValues>& values, bool has_label,
                                               const std::string& path,
                                               std::vector<std::string>& classes) {
  std::vector<ArrayColumn> columns;
  for (ObjectValues& of : values) {
    if (Status finished = of.Finish(); !finished.ok()) {
      return std::move(finished).error().WithFile(path);
    }
    if (std::vector<std::string> names = of.NumberClasses(); !names.empty()) {
      if (has_label) {
        return Error{
            .code = Code::kInvalidArgument,
            .cause = "'labels' has the classes of objects as text, and the images have a label",
            .file = path,
            .advice = "Leave the label of the images out, or write class numbers"};
      }
      classes = std::move(names);
    }
    columns.push_back(of.View());
  }
  return columns;
}

Result<ObjectColumns> ObjectColumns::Take(std::vector<ObjectValues> values, bool has_label,
                                          const std::string& path) {
  ObjectColumns made;
  if (values.empty()) return made;
  const auto kept = std::make_shared<std::vector<ObjectValues>>(std::move(values));
  ASSIGN_OR_RETURN(std::vector<ArrayColumn> columns,
                   FinishObjects(*kept, has_label, path, made.classes));
  for (size_t i = 0; i < columns.size(); ++i) {
    made.bytes += (*kept)[i].objects() * columns[i].row_bytes();
    made.bytes += columns[i].samples * sizeof(int64_t);
  }
  Result<MemoryColumns> taken = MemoryColumns::Make(std::move(columns), kept);
  if (!taken.ok()) return Error(taken.error()).WithFile(path);
  made.columns = *std::move(taken);
  return made;
}

uint64_t ObjectColumns::Hash(uint64_t hash) const {
  for (const std::string& name : classes) hash = Hash64(name, hash);
  return columns.columns().empty() ? hash : columns.Hash(/*all_numbers=*/true, hash);
}

}  // namespace stoker
