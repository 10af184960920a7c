// Refuses Git LFS pointers where a file may have any content.
#pragma once

#include "core/result/result.h"
#include "io/files/input_file.h"

namespace stoker {

// The error of LfsPointer (core/system/file_kind.h), with the file, if the file is such a pointer.
Status RefuseLfsPointer(const InputFile& file);

}  // namespace stoker
