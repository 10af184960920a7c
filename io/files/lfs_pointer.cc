#include "io/files/lfs_pointer.h"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "core/result/try.h"
#include "core/system/file_kind.h"

namespace stoker {

Status RefuseLfsPointer(const InputFile& file) {
  std::array<uint8_t, 64> first{};
  ASSIGN_OR_RETURN(const size_t got, file.ReadAt(0, first));
  std::optional<Error> pointer = LfsPointer(std::span(first).first(got));
  if (pointer) return std::move(*pointer).WithFile(file.path());
  return {};
}

}  // namespace stoker
