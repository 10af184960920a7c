# stoker_headers_alone(NAME FOLDERS...): an object library with one translation unit for each header
# below the folders, which includes nothing else. It builds when every header includes what it needs;
# `./dev check` builds it. Not for "-inl.h": those are sources that are compiled several times. Nor for headers
# that a source includes first, four fifths of all: what these lack is found with STOKER_UNITY=OFF, which no
# command of ./dev sets.
function(stoker_headers_alone name)
  list(TRANSFORM ARGN APPEND "/*.h" OUTPUT_VARIABLE patterns)
  list(TRANSFORM patterns PREPEND "${PROJECT_SOURCE_DIR}/")
  file(GLOB_RECURSE headers RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS ${patterns})
  list(FILTER headers EXCLUDE REGEX "-inl\\.h$")
  list(TRANSFORM patterns REPLACE "\\.h$" ".cc")
  file(GLOB_RECURSE includers CONFIGURE_DEPENDS ${patterns})
  foreach(source IN LISTS includers)
    file(STRINGS ${source} first REGEX "^#include " LIMIT_COUNT 1)
    if(first MATCHES "\"(.+)\"")
      list(REMOVE_ITEM headers ${CMAKE_MATCH_1})
    endif()
  endforeach()
  set(sources)
  foreach(header IN LISTS headers)
    set(source ${CMAKE_CURRENT_BINARY_DIR}/${name}/${header}.cc)
    # Included twice, which must work too.
    file(GENERATE OUTPUT ${source} CONTENT "#include \"${header}\"\n#include \"${header}\"\n")
    list(APPEND sources ${source})
  endforeach()
  add_library(${name} OBJECT EXCLUDE_FROM_ALL ${sources})
  target_link_libraries(${name} PRIVATE stoker_flags)
  target_compile_options(${name} PRIVATE -O0 -g0)
endfunction()
