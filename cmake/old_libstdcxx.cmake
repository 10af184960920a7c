# Lets a wheel run with libstdc++ 11: old_condition_wait.cc has the reason.
if(STOKER_OLD_LIBSTDCXX AND STOKER_PYTHON AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_library(stoker_old_condition_wait OBJECT bindings/python/old_condition_wait.cc)
  target_link_libraries(stoker_old_condition_wait PRIVATE stoker_flags)
  # Link-time optimisation does not see the assembler's symbol.
  target_compile_options(stoker_old_condition_wait PRIVATE -fno-lto -fvisibility=hidden)
  foreach(target _stoker stoker_python_cli stoker_shared)
    target_link_libraries(${target} PRIVATE stoker_old_condition_wait
      -Wl,--wrap=_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE)
  endforeach()
endif()
