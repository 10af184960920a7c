# Installs stoker, and makes photographs by the installed command.
include(${CMAKE_CURRENT_LIST_DIR}/steps.cmake)
file(REMOVE_RECURSE ${SCRATCH})
run(_ ${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix})
run(_ ${prefix}/bin/stoker synth ${photos} --count 100 --seed 1)
