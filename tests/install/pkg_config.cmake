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

set(program ${SCRATCH}/no_exceptions)
run(flags ${pkg_config} --cflags --libs stoker)
separate_arguments(flags UNIX_COMMAND "${flags}")
run(_ ${COMPILER} -std=c++20 -fno-exceptions ${warnings} ${CMAKE_CURRENT_LIST_DIR}/no_exceptions.cc
  -o ${program} ${flags} -Wl,-rpath,${libraries})
run(output ${program} ${photos})
expect("${output}" "^100 images\n$")
execute_process(COMMAND ${program} ${SCRATCH}/nowhere RESULT_VARIABLE code OUTPUT_VARIABLE output)
expect("${code} ${output}" "^1 NOT_FOUND: .*nowhere")

# A program in C.
find_program(c_compiler NAMES cc gcc clang REQUIRED)
set(program ${SCRATCH}/processor)
run(_ ${c_compiler} -std=c11 ${warnings} ${CMAKE_CURRENT_LIST_DIR}/processor.c -o ${program} ${flags}
  -Wl,-rpath,${libraries})
file(GLOB_RECURSE files ${photos}/*.jpg)
list(GET files 0 1 two)
run(output ${program} ${two})
expect("${output}" "^2 images: [0-9]+ patches of 1176 values\n$")
execute_process(COMMAND ${program} ${SCRATCH}/nowhere RESULT_VARIABLE code OUTPUT_VARIABLE output)
expect("${code} ${output}" "^1 .*nowhere")

# The path of the builder's CUDA is a variable.
run(flags ${pkg_config} --libs --define-variable=cuda_libdir=/elsewhere stoker-static)
if(flags MATCHES "cudart")
  expect("${flags}" "-L/elsewhere -lcudart_static")
endif()

# What there is to know of libstoker.so is asked for without the packages that the archive needs.
set(ENV{PKG_CONFIG_LIBDIR} ${folder})
run(flags ${pkg_config} --cflags --libs stoker)
expect("${flags}" "-I[^ ]*/include " "-lstoker")
if(flags MATCHES "tbb|uring|jpeg")
  message(FATAL_ERROR "libstoker.so brings its libraries itself: ${flags}")
endif()
