#include "io/memory/arrays.h"

#include <string>
#include <utility>

#include "core/result/try.h"
#include "io/memory/memory_columns.h"
#include "io/memory/memory_source.h"

namespace stoker {

Result<std::shared_ptr<const SampleSource>> Arrays(std::vector<ArrayColumn> columns,
                                                   std::shared_ptr<void> owner) {
  if (columns.empty() || columns.size() > 2) {
    return Error{.code = Code::kInvalidArgument,
                 .cause = std::to_string(columns.size()) + " arrays were given",
                 .advice = "Give one (images), or two (images and labels)"};
  }
  MemorySourceOptions options{.kind = "arrays"};
  if (columns.size() == 2 && columns[1].offsets == nullptr) options.label = 1;
  ASSIGN_OR_RETURN(MemoryColumns made, MemoryColumns::Make(std::move(columns), std::move(owner)));
  return MakeMemorySource(std::move(made), std::move(options));
}

}  // namespace stoker
