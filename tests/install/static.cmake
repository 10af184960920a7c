# The example with libstoker.a, by find_package(stoker COMPONENTS static).
include(${CMAKE_CURRENT_LIST_DIR}/steps.cmake)
build_project(${CMAKE_CURRENT_LIST_DIR}/static static -D STOKER_SOURCE=${SOURCE})
run(output ${SCRATCH}/static/train_loop ${photos})
expect_epochs("${output}")
file(GET_RUNTIME_DEPENDENCIES EXECUTABLES ${SCRATCH}/static/train_loop
  RESOLVED_DEPENDENCIES_VAR libraries)
if(NOT libraries MATCHES "/libtbb\\." OR libraries MATCHES "/libstoker\\.")
  message(FATAL_ERROR "it is linked with ${libraries}")
endif()

# A component that is not there is said so.
file(WRITE ${SCRATCH}/no_component/CMakeLists.txt
  "cmake_minimum_required(VERSION 3.22)\nproject(p CXX)\nfind_package(stoker REQUIRED COMPONENTS gui)\n")
execute_process(
  COMMAND ${CMAKE_COMMAND} -S ${SCRATCH}/no_component -B ${SCRATCH}/no_component/build
    -D CMAKE_PREFIX_PATH=${prefix} -D CMAKE_CXX_COMPILER=${COMPILER} -G ${GENERATOR}
  RESULT_VARIABLE code OUTPUT_QUIET ERROR_VARIABLE err)
if(code EQUAL 0)
  message(FATAL_ERROR "a component that does not exist was found")
endif()
expect("${err}" "no component gui")
