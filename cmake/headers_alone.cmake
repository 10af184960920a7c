# stoker_headers_alone(NAME ROOT FOLDERS...): an object library with one translation unit for each
# header below the folders, which includes nothing else. It builds when every header includes what
# it needs. Not for "-inl.h": those are sources that are compiled several times.
function(stoker_headers_alone name root)
  list(TRANSFORM ARGN APPEND "/*.h" OUTPUT_VARIABLE patterns)
  list(TRANSFORM patterns PREPEND "${root}/")
  file(GLOB_RECURSE headers RELATIVE ${root} CONFIGURE_DEPENDS ${patterns})
  list(FILTER headers EXCLUDE REGEX "-inl\\.h$")
  if(root STREQUAL PROJECT_SOURCE_DIR)  # their installed copies are compiled
    list(REMOVE_ITEM headers ${stoker_umbrella} ${stoker_public_headers})
  endif()
  set(sources)
  foreach(header IN LISTS headers)
    set(source ${CMAKE_CURRENT_BINARY_DIR}/${name}/${header}.cc)
    # Twice: it must also bear being included again.
    file(GENERATE OUTPUT ${source} CONTENT "#include \"${header}\"\n#include \"${header}\"\n")
    list(APPEND sources ${source})
  endforeach()
  add_library(${name} OBJECT ${sources})
  target_include_directories(${name} PRIVATE ${root})
  target_compile_options(${name} PRIVATE -O0 -g0)
endfunction()
