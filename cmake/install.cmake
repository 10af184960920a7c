# What `cmake --install` puts where, and the package that `find_package(stoker)` finds.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# The headers that users get: stoker.h, and all that it reaches. No more is promised.
function(stoker_reached_headers header result)
  set(reached ${header})
  set(pending ${header})
  while(pending)
    list(POP_FRONT pending current)
    file(STRINGS ${PROJECT_SOURCE_DIR}/${current} lines REGEX "^#include \"")
    foreach(line IN LISTS lines)
      string(REGEX REPLACE "^#include \"([^\"]+)\".*" "\\1" next "${line}")
      if(NOT next IN_LIST reached)
        list(APPEND reached ${next})
        list(APPEND pending ${next})
      endif()
    endforeach()
  endwhile()
  set(${result} ${reached} PARENT_SCOPE)
endfunction()

# Below 1.0 each minor version may break the ABI.
set_target_properties(stoker PROPERTIES
  VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
target_compile_features(stoker INTERFACE cxx_std_20)
# Both: <stoker/stoker.h>, and the "engine/core/batch.h" that it includes.
target_include_directories(stoker INTERFACE
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/stoker>)

install(TARGETS stoker EXPORT stoker_targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET stoker_cli)
  file(RELATIVE_PATH to_library ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
  # In a Python package the library lies beside the command.
  set_target_properties(stoker_cli PROPERTIES
    INSTALL_RPATH "$ORIGIN/${to_library}$<$<BOOL:${STOKER_PYTHON}>:;$ORIGIN>")
  install(TARGETS stoker_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

set(umbrella bindings/cpp/stoker/stoker.h)
stoker_reached_headers(${umbrella} headers)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${headers})  # they may reach others
foreach(header IN LISTS headers)
  if(header STREQUAL umbrella)
    set(folder "")
  else()
    get_filename_component(folder ${header} DIRECTORY)
  endif()
  install(FILES ${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/stoker/${folder})
endforeach()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/stoker)
install(EXPORT stoker_targets NAMESPACE stoker:: DESTINATION ${package_dir})
configure_package_config_file(cmake/stokerConfig.cmake.in
  ${PROJECT_BINARY_DIR}/stokerConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/stokerConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/stokerConfig.cmake
  ${PROJECT_BINARY_DIR}/stokerConfigVersion.cmake DESTINATION ${package_dir})
