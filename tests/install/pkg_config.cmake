# The example, by pkg-config: with libstoker.so, and with libstoker.a.
include(${CMAKE_CURRENT_LIST_DIR}/steps.cmake)
find_program(pkg_config pkg-config REQUIRED)
file(GLOB folder ${prefix}/lib*/pkgconfig ${prefix}/lib*/*/pkgconfig)
get_filename_component(libraries ${folder} DIRECTORY)
set(ENV{PKG_CONFIG_PATH} ${folder})
foreach(name stoker stoker-static)
  run(flags ${pkg_config} --cflags --libs "${name} >= 0.1")
  separate_arguments(flags UNIX_COMMAND "${flags}")
  set(program ${SCRATCH}/train_loop_by_pkg_config_${name})
  run(_ ${COMPILER} -std=c++20 -O1 ${warnings} ${SOURCE}/examples/cpp/train_loop.cc -o ${program}
    ${flags} -Wl,-rpath,${libraries})
  run(output ${program} ${photos})
  expect_epochs("${output}")
endforeach()

# What there is to know of libstoker.so is asked for without the packages that the archive needs.
set(ENV{PKG_CONFIG_LIBDIR} ${folder})
run(flags ${pkg_config} --cflags --libs stoker)
expect("${flags}" "-I[^ ]*/include " "-lstoker")
if(flags MATCHES "tbb|uring|jpeg")
  message(FATAL_ERROR "libstoker.so brings its libraries itself: ${flags}")
endif()
