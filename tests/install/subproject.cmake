# The example in a project that adds stoker by add_subdirectory, as FetchContent does. Compiled only: to link it
# would mean to build all of stoker again.
include(${CMAKE_CURRENT_LIST_DIR}/steps.cmake)
set(project ${SCRATCH}/subproject)
file(REMOVE_RECURSE ${project})
file(WRITE ${project}/CMakeLists.txt "cmake_minimum_required(VERSION 3.22)
project(p CXX)
add_subdirectory(${SOURCE} stoker)
add_library(program OBJECT ${SOURCE}/examples/cpp/train_loop.cc)
target_link_libraries(program PRIVATE stoker::stoker)
file(GENERATE OUTPUT \${CMAKE_BINARY_DIR}/flags
  CONTENT \"$<TARGET_PROPERTY:program,COMPILE_OPTIONS> $<TARGET_PROPERTY:program,INCLUDE_DIRECTORIES>\")
")
run(_ ${CMAKE_COMMAND} -S ${project} -B ${project}/build -G ${GENERATOR}
  -D CMAKE_CXX_COMPILER=${COMPILER} -D STOKER_CUDA=OFF)
run(_ ${CMAKE_COMMAND} --build ${project}/build --target program)

# The program has its own warnings, and may have a folder core/ of its own.
file(READ ${project}/build/flags flags)
string(REGEX MATCHALL "[^ ;]+" flags "${flags}")
if(NOT flags STREQUAL "${project}/build/stoker/include")
  message(FATAL_ERROR "stoker gives the program ${flags}")
endif()
# The tests are stoker's own, and how the project is built is the project's.
if(EXISTS ${project}/build/stoker/tests)
  message(FATAL_ERROR "the tests are built")
endif()
file(STRINGS ${project}/build/CMakeCache.txt settings REGEX "^(CMAKE_BUILD_TYPE:.*=.+|BUILD_TESTING:)")
if(settings)
  message(FATAL_ERROR "stoker sets ${settings}")
endif()
