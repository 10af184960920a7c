# What the tests share. Given: BUILD, ARCHIVE, SOURCE, SCRATCH, GENERATOR, COMPILER, NM.
cmake_minimum_required(VERSION 3.22)
set(prefix ${SCRATCH}/prefix)
set(photos ${SCRATCH}/photos)
set(warnings -Wall -Wextra -Wpedantic -Werror)

# run(OUTPUT COMMAND...): stops the test when the command fails.
function(run output)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE err)
  if(NOT code EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}\nended with ${code}\n${out}\n${err}")
  endif()
  set(${output} "${out}" PARENT_SCOPE)
endfunction()

# expect(TEXT REGEX...)
function(expect text)
  foreach(regex IN LISTS ARGN)
    if(NOT text MATCHES "${regex}")
      message(FATAL_ERROR "no match for '${regex}' in:\n${text}")
    endif()
  endforeach()
endfunction()

# build_project(FOLDER NAME OPTION...): into ${SCRATCH}/NAME, with the installed stoker.
function(build_project folder name)
  list(JOIN warnings " " flags)
  file(REMOVE_RECURSE ${SCRATCH}/${name})
  run(_ ${CMAKE_COMMAND} -S ${folder} -B ${SCRATCH}/${name} -G ${GENERATOR}
    -D CMAKE_CXX_COMPILER=${COMPILER} -D CMAKE_PREFIX_PATH=${prefix}
    -D CMAKE_BUILD_TYPE=Release "-DCMAKE_CXX_FLAGS=${flags}" ${ARGN})
  run(_ ${CMAKE_COMMAND} --build ${SCRATCH}/${name})
endfunction()

# What examples/cpp prints for ${photos}.
function(expect_epochs output)
  expect("${output}"
    "epoch 0, batch 0: 64 images, mean [0-9.]+\n"
    "epoch 0, batch 1: 36 images"
    "epoch 1, batch 1: 36 images"
    "epoch 1, label 0: [0-9]+ images")
endfunction()
