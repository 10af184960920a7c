# The files that `cmake --install` installs, and the packages for `find_package(stoker)` and pkg-config.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Headers are installed as <stoker/…>, and include each other by these names.
stoker_copy_public_headers(${PROJECT_BINARY_DIR}/include)
install(DIRECTORY ${PROJECT_BINARY_DIR}/include/stoker DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/stoker)
# stoker_install_library(TARGET NAME): installs it as stoker::NAME. Each target has a file of its
# own, so that the archive's dependencies are not required for libstoker.so.
function(stoker_install_library target name)
  target_compile_features(${target} INTERFACE cxx_std_20)
  target_include_directories(${target} INTERFACE
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  install(TARGETS ${target} EXPORT ${name}_targets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT ${name}_targets NAMESPACE stoker:: DESTINATION ${package_dir})
endfunction()
stoker_install_library(stoker_shared stoker)
stoker_install_library(stoker stoker_static)
if(TARGET stoker_cli)
  install(TARGETS stoker_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
# Written by the command, after it was built.
if(TARGET stoker_cli AND NOT CMAKE_CROSSCOMPILING AND NOT STOKER_SANITIZE)
  set(written ${PROJECT_BINARY_DIR}/share)
  install(FILES ${written}/stoker.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  install(FILES ${written}/stoker
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${written}/_stoker DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
  install(FILES ${written}/stoker.fish
    DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()
# For programs under the thread sanitizer.
install(FILES cmake/tsan.supp DESTINATION ${CMAKE_INSTALL_DATADIR}/stoker)

configure_package_config_file(cmake/stokerConfig.cmake.in
  ${PROJECT_BINARY_DIR}/stokerConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/stokerConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/stokerConfig.cmake
  ${PROJECT_BINARY_DIR}/stokerConfigVersion.cmake DESTINATION ${package_dir})

set(pc_dir ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH STOKER_PC_PREFIX ${pc_dir} ${CMAKE_INSTALL_PREFIX}/.)
string(REGEX REPLACE "/$" "" STOKER_PC_PREFIX "${STOKER_PC_PREFIX}")
if(STOKER_CUDA_FOUND)
  get_target_property(cudart CUDA::cudart_static IMPORTED_LOCATION)
  get_filename_component(STOKER_PC_CUDA_LIBDIR ${cudart} DIRECTORY)
  set(STOKER_PC_CUDA "-L\${cuda_libdir} -lcudart_static -ldl -lrt ")
endif()
foreach(name stoker stoker-static)
  configure_file(cmake/${name}.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()
