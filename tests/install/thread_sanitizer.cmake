# The example under the thread sanitizer, with a stoker that is not: the installed suppressions
# leave nothing to report, and leave a race of the program's own.
include(${CMAKE_CURRENT_LIST_DIR}/steps.cmake)
file(GLOB library ${prefix}/lib*/libstoker.so ${prefix}/lib*/*/libstoker.so)
get_filename_component(libraries ${library} DIRECTORY)
find_program(setarch setarch)  # GNU's thread sanitizer needs the address space that it knows
set(plainly)
if(setarch)
  execute_process(COMMAND ${setarch} -R true RESULT_VARIABLE refused ERROR_QUIET)
  if(refused EQUAL 0)
    set(plainly ${setarch} -R)
  endif()
endif()

# build(NAME SOURCE)
function(build name source)
  run(_ ${COMPILER} -std=c++20 -O1 -g1 -fsanitize=thread ${warnings} ${source}
    -o ${SCRATCH}/${name} -I${prefix}/include -L${libraries} -lstoker -Wl,-rpath,${libraries})
endfunction()

set(ENV{TSAN_OPTIONS} suppressions=${prefix}/share/stoker/tsan.supp)
build(train_loop_tsan ${SOURCE}/examples/cpp/train_loop.cc)
run(output ${plainly} ${SCRATCH}/train_loop_tsan ${photos})
expect_epochs("${output}")

build(race ${CMAKE_CURRENT_LIST_DIR}/race.cc)
execute_process(COMMAND ${plainly} ${SCRATCH}/race ${photos}
  RESULT_VARIABLE code OUTPUT_QUIET ERROR_VARIABLE err)
if(code EQUAL 0)
  message(FATAL_ERROR "a race of the program's own was not reported:\n${err}")
endif()
expect("${err}" "data race .*race.cc:")
