# cmake -D BUILD=… -D EXAMPLE=… -D SCRATCH=… -D GENERATOR=… -D COMPILER=… -P install_test.cmake
set(prefix ${SCRATCH}/prefix)
set(photos ${SCRATCH}/photos)
file(REMOVE_RECURSE ${SCRATCH})

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

run(_ ${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix})
run(_ ${CMAKE_COMMAND} -S ${EXAMPLE} -B ${SCRATCH}/example -G ${GENERATOR}
  -D CMAKE_CXX_COMPILER=${COMPILER} -D CMAKE_PREFIX_PATH=${prefix} -D CMAKE_BUILD_TYPE=Release
  "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Wpedantic -Werror")
run(_ ${CMAKE_COMMAND} --build ${SCRATCH}/example)

# The installed command finds the installed library.
run(_ ${prefix}/bin/stoker synth ${photos} --count 100 --seed 1)
run(output ${SCRATCH}/example/train_loop ${photos})
expect("${output}"
  "epoch 0, batch 0: 64 images, mean [0-9.]+\n"
  "epoch 0, batch 1: 36 images"
  "epoch 1, batch 1: 36 images"
  "epoch 1, label 0: [0-9]+ images")

# A missing folder is an error with a name, not a crash.
execute_process(COMMAND ${SCRATCH}/example/train_loop ${SCRATCH}/nowhere
  RESULT_VARIABLE code ERROR_VARIABLE err)
if(NOT code EQUAL 1)
  message(FATAL_ERROR "exit code ${code} for a missing folder")
endif()
expect("${err}" "NOT_FOUND: .*nowhere")
