#include "io/annotations/object_columns.h"

#include <memory>
#include <utility>

#include "core/hash/hash.h"
#include "core/result/try.h"

namespace stoker {

Result<ObjectColumns> ObjectColumns::Take(std::vector<ObjectValues> values, bool has_label,
                                          const std::string& path) {
  ObjectColumns made;
  if (values.empty()) return made;
  const auto kept = std::make_shared<std::vector<ObjectValues>>(std::move(values));
  std::vector<ArrayColumn> columns;
  for (ObjectValues& of : *kept) {
    if (Status finished = of.Finish(); !finished.ok()) {
      return std::move(finished).error().WithFile(path);
    }
    if (std::vector<std::string> names = of.NumberClasses(); !names.empty()) {
      if (has_label) return ClassesAndLabel(path);
      made.classes = std::move(names);
    }
    columns.push_back(of.View());
    made.bytes += of.objects() * columns.back().row_bytes() + of.samples() * sizeof(int64_t);
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
