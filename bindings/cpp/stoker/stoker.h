// stoker for C++ programs: the whole API in one include.
//
//   find_package(stoker REQUIRED)
//   target_link_libraries(program PRIVATE stoker::stoker)
//
// Exactly the headers that this one includes are installed; they include no headers of other
// libraries.
#pragma once

static_assert(__cplusplus >= 202002L, "stoker needs C++20: compile with -std=c++20");

#include "core/batch.h"
#include "core/result.h"
#include "engine/arrays/compose.h"
#include "engine/arrays/decode_image.h"
#include "engine/loader/loader.h"
#include "engine/loader/map_function.h"
#include "engine/loader/options.h"
#include "engine/runtime/runtime.h"
#include "engine/watching/stats.h"
#include "engine/watching/trace_file.h"
#include "io/sources/arrays.h"
#include "io/sources/arrow.h"
#include "io/sources/combine.h"
#include "io/sources/image_folder.h"
#include "io/sources/loaded_sample.h"
#include "io/sources/manifest.h"
#include "io/sources/packed.h"
#include "io/sources/path_source.h"
#include "io/sources/records.h"
#include "io/sources/subset.h"
#include "io/sources/tar.h"
#include "io/sources/tfrecord.h"
#include "io/sources/weighted.h"
#include "transforms/spec/transform.h"
