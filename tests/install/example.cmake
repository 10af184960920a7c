# The example, by find_package(stoker).
include(${CMAKE_CURRENT_LIST_DIR}/steps.cmake)
build_project(${SOURCE}/examples/cpp example)
run(output ${SCRATCH}/example/train_loop ${photos})
expect_epochs("${output}")
file(GLOB folders ${photos}/class*)
list(GET folders 0 folder)
file(GLOB files ${folder}/*)
list(LENGTH files count)
run(output ${SCRATCH}/example/own_source ${folder})
expect("${output}" "^${count} images of [0-9]+ bytes\n$")
run(output ${SCRATCH}/example/own_transform ${folder})
expect("${output}" "^${count} images, 0 values of other levels\n$")

# A missing folder is an error with a name, not a crash.
execute_process(COMMAND ${SCRATCH}/example/train_loop ${SCRATCH}/nowhere
  RESULT_VARIABLE code ERROR_VARIABLE err)
if(NOT code EQUAL 1)
  message(FATAL_ERROR "exit code ${code} for a missing folder")
endif()
expect("${err}" "NOT_FOUND: .*nowhere")
