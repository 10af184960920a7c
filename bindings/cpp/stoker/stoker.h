// stoker for C++ programs: the whole API in one include.
//
//   find_package(stoker REQUIRED)
//   target_link_libraries(program PRIVATE stoker::stoker)
//
// Exactly the headers that this one includes are installed; they include no headers of other
// libraries.
#pragma once

static_assert(__cplusplus >= 202002L, "stoker needs C++20: compile with -std=c++20");

#include "bindings/c/processor_config.h"
#include "core/batch/batch.h"
#include "core/result/result.h"
#include "engine/arrays/compose.h"
#include "engine/arrays/decode_image.h"
#include "engine/arrays/processor.h"
#include "engine/arrays/sized_by_headers.h"
#include "engine/loader/loader.h"
#include "engine/map/map_function.h"
#include "engine/metrics/stats.h"
#include "engine/metrics/trace_file.h"
#include "engine/options/options.h"
#include "engine/runtime/runtime.h"
#include "io/annotations/coco.h"
#include "io/annotations/voc.h"
#include "io/annotations/yolo.h"
#include "io/arrow/arrow.h"
#include "io/folder/image_folder.h"
#include "io/folder/masks.h"
#include "io/manifest/manifest.h"
#include "io/memory/arrays.h"
#include "io/memory/records.h"
#include "io/packed/packed.h"
#include "io/ranges/path_source.h"
#include "io/select/clips.h"
#include "io/select/combine.h"
#include "io/select/sized.h"
#include "io/select/subset.h"
#include "io/select/weighted.h"
#include "io/source/loaded_sample.h"
#include "io/tar/tar.h"
#include "io/tfrecord/tfrecord.h"
#include "transforms/spec/transform.h"
