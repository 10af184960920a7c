# Links all parts to two libraries.
#
# stoker: libstoker.a. This repository's programs and tests link it, because they use internal headers.
# stoker_shared: libstoker.so, for users and the Python package. It exports only what the installed
# headers declare, so that our instances of other libraries' templates do not leak into programs.
#
# With STOKER_ONE_LIBRARY programs and tests link libstoker.so, too, which then exports everything: they
# do not each hold the library, and one that is preloaded replaces functions of it.
set(stoker_parts
  stoker_c
  stoker_core
  stoker_engine
  stoker_gpu
  stoker_jpeg
  stoker_mask
  stoker_objects
  stoker_packed
  stoker_png
  stoker_readers
  stoker_sheet
  stoker_sources
  stoker_transforms
  stoker_webp
  stoker_whole)
# The libraries that a program must link with libstoker.a; stokerConfig.cmake.in finds them.
set(stoker_others
  JPEG::JPEG
  PkgConfig::HWY
  PkgConfig::PUGIXML
  PkgConfig::URING
  PkgConfig::WEBP
  PkgConfig::YAML
  TBB::tbb
  Threads::Threads
  ZLIB::ZLIB)
if(STOKER_CUDA_FOUND)
  list(APPEND stoker_others CUDA::cudart_static)
endif()

list(TRANSFORM stoker_others REPLACE "(.+)" "$<INSTALL_INTERFACE:\\1>")

if(STOKER_ONE_LIBRARY)
  add_library(stoker INTERFACE)
  target_link_libraries(stoker INTERFACE $<BUILD_INTERFACE:stoker_flags> $<BUILD_INTERFACE:stoker_shared>)
else()
  add_library(stoker STATIC)
  target_link_libraries(stoker
    PUBLIC $<BUILD_INTERFACE:stoker_flags>
    PRIVATE "$<BUILD_INTERFACE:${stoker_parts}>" ${stoker_others})
endif()

# The exported symbols: the names that the headers declare.
set(stoker_exported_headers ${stoker_public_headers})
if(STOKER_PYTHON)  # and those that the extension module and the command of the Python package use
  file(GLOB_RECURSE sources RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS
    bindings/cli/*.cc bindings/python/*.cc)
  foreach(source IN LISTS sources)
    stoker_reached_headers(${source} reached)
    list(APPEND stoker_exported_headers ${reached})
  endforeach()
  list(REMOVE_DUPLICATES stoker_exported_headers)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${stoker_exported_headers})
endif()
stoker_declared_names("${stoker_exported_headers}" classes functions)
set(STOKER_EXPORTS)
foreach(name IN LISTS classes functions)
  # A name may be followed by a member, parameters, or an ABI tag.
  string(APPEND STOKER_EXPORTS "    stoker::${name}[!A-Za-z0-9_]*;\n")
endforeach()
foreach(name IN LISTS classes)
  foreach(kind "typeinfo" "typeinfo name" "vtable")
    string(APPEND STOKER_EXPORTS "    \"${kind} for stoker::${name}\";\n")
  endforeach()
endforeach()
set(stoker_exports ${PROJECT_BINARY_DIR}/stoker.map)
configure_file(cmake/stoker.map.in ${stoker_exports} @ONLY)

add_library(stoker_shared SHARED)
add_library(stoker::stoker ALIAS stoker_shared)  # for projects that add this one by add_subdirectory
target_link_libraries(stoker_shared PRIVATE stoker_flags ${stoker_parts})
if(STOKER_ONE_LIBRARY)
  # All but CUDA's runtime: PyTorch's, which has the same names, would take its place.
  target_link_options(stoker_shared PRIVATE -Wl,--exclude-libs,libcudart_static.a)
else()
  target_link_options(stoker_shared PRIVATE -Wl,--version-script=${stoker_exports})
endif()
target_include_directories(stoker_shared INTERFACE $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>)
set_target_properties(stoker_shared PROPERTIES
  OUTPUT_NAME stoker
  LINK_DEPENDS ${stoker_exports}
  # Below 1.0 each minor version may break the ABI.
  VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
