// stoker for C++ programs: all that a user needs, in one include.
//
//   find_package(stoker REQUIRED)
//   target_link_libraries(program PRIVATE stoker::stoker)
//
// What these headers reach is what is installed; they include no other library's headers.
#pragma once

#include "core/batch.h"
#include "core/result.h"
#include "engine/loader/loader.h"
#include "engine/loader/options.h"
#include "engine/runtime/runtime.h"
#include "engine/watching/stats.h"
#include "engine/watching/trace_file.h"
#include "io/sources/arrays.h"
#include "io/sources/image_folder.h"
#include "transforms/spec/transform.h"
