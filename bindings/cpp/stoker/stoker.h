// stoker for C++ programs: all that a user needs, in one include.
//
//   find_package(stoker REQUIRED)
//   target_link_libraries(program PRIVATE stoker::stoker)
//
// What these headers reach is what is installed; they include no other library's headers.
#pragma once

#include "engine/core/batch.h"
#include "engine/core/result.h"
#include "engine/pipeline/advice.h"
#include "engine/pipeline/cursor.h"
#include "engine/pipeline/device_loader.h"
#include "engine/pipeline/loader.h"
#include "engine/pipeline/options.h"
#include "engine/pipeline/prometheus.h"
#include "engine/pipeline/runtime.h"
#include "engine/pipeline/shared_loader.h"
#include "engine/pipeline/stats.h"
#include "engine/pipeline/trace_file.h"
#include "io/sources/arrays.h"
#include "io/sources/image_folder.h"
#include "transforms/plan.h"
#include "transforms/transform.h"
