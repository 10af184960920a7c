# Installs stoker, and makes photographs by the installed command.
include(${CMAKE_CURRENT_LIST_DIR}/steps.cmake)
file(REMOVE_RECURSE ${SCRATCH})
run(_ ${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix})
foreach(name man/man1/stoker.1 bash-completion/completions/stoker zsh/site-functions/_stoker
    fish/vendor_completions.d/stoker.fish)
  file(SIZE ${prefix}/share/${name} bytes)
  if(bytes LESS 1000)
    message(FATAL_ERROR "share/${name} has ${bytes} bytes")
  endif()
endforeach()
run(_ ${prefix}/bin/stoker synth ${photos} --count 100 --seed 1)
