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

# configure(NAME TEXT): a project that does TEXT; sets `code` and `err`.
function(configure name text)
  file(WRITE ${SCRATCH}/${name}/CMakeLists.txt
    "cmake_minimum_required(VERSION 3.22)\nproject(p CXX)\n${text}\n")
  execute_process(
    COMMAND ${CMAKE_COMMAND} -S ${SCRATCH}/${name} -B ${SCRATCH}/${name}/build
      -D CMAKE_PREFIX_PATH=${prefix} -D CMAKE_CXX_COMPILER=${COMPILER} -G ${GENERATOR} ${ARGN}
    RESULT_VARIABLE code OUTPUT_QUIET ERROR_VARIABLE err)
  set(code ${code} PARENT_SCOPE)
  set(err "${err}" PARENT_SCOPE)
endfunction()

# A component that is not there is said so.
configure(no_component "find_package(stoker REQUIRED COMPONENTS gui)")
if(code EQUAL 0)
  message(FATAL_ERROR "a component that does not exist was found")
endif()
expect("${err}" "no component gui")

# So are libraries that are not there; who can do without the component gets the rest.
configure(no_libraries "find_package(stoker REQUIRED COMPONENTS static)"
  -D CMAKE_DISABLE_FIND_PACKAGE_TBB=ON)
if(code EQUAL 0)
  message(FATAL_ERROR "the static component was found without its libraries")
endif()
expect("${err}" "were not found: TBB")
configure(optional "find_package(stoker QUIET OPTIONAL_COMPONENTS static gui)
if(NOT stoker_FOUND OR NOT TARGET stoker::stoker OR stoker_static_FOUND OR stoker_gui_FOUND)
  message(FATAL_ERROR \"found: \${stoker_FOUND}, static: \${stoker_static_FOUND}\")
endif()" -D CMAKE_DISABLE_FIND_PACKAGE_TBB=ON)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "${err}")
endif()
