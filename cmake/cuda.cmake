# STOKER_CUDA_FOUND: whether stoker is built with CUDA. If so, the language CUDA is enabled and
# CUDA::cudart_static exists. One build runs on machines with and without a driver.
set(STOKER_CUDA AUTO CACHE STRING "Build with CUDA: ON, OFF, or AUTO (where its toolkit is found)")
set_property(CACHE STOKER_CUDA PROPERTY STRINGS AUTO ON OFF)
set(STOKER_LEAST_CUDA 12.5)  # cudaGetDriverEntryPointByVersion, and <cuda/ptx>

# Sets `result` to the architectures to compile for, as far as this nvcc knows them: 12.8 is the first that
# knows 100 and 120. "virtual" is PTX, which the driver compiles for a device that has no code of its own.
function(stoker_architectures nvcc result)
  execute_process(COMMAND ${nvcc} --list-gpu-arch OUTPUT_VARIABLE listed ERROR_QUIET)
  set(known)
  set(architectures 75-virtual 80-real 90-real 90-virtual 100-real 120-real)
  if(STOKER_SANITIZE)  # kernels are not instrumented
    set(architectures 75-virtual)  # for every device
  endif()
  foreach(architecture IN LISTS architectures)
    string(REGEX MATCH "^[0-9]+" number ${architecture})
    if("${listed}" MATCHES "compute_${number}\n")
      list(APPEND known ${architecture})
    endif()
  endforeach()
  set(${result} ${known} PARENT_SCOPE)
endfunction()

# Sets `result` to the reason why not; empty: the language is enabled, and the toolkit found.
macro(stoker_look_for_cuda result)
  set(${result} "")
  # nvcc compiles host code with the project's compiler, unless the user chooses another.
  if(NOT CMAKE_CUDA_HOST_COMPILER AND NOT DEFINED ENV{CUDAHOSTCXX})
    set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER} CACHE FILEPATH "nvcc's host compiler")
  endif()
  if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
    # The usual folders of the toolkit if it is not in PATH.
    find_program(STOKER_NVCC nvcc PATHS /usr/local/cuda/bin)
    mark_as_advanced(STOKER_NVCC)
    if(STOKER_NVCC)
      set(ENV{CUDACXX} ${STOKER_NVCC})  # check_language would trust CMAKE_CUDA_COMPILER
    endif()
  endif()
  set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER AND NOT DEFINED CMAKE_CUDA_ARCHITECTURES AND NOT DEFINED ENV{CUDAARCHS})
    stoker_architectures(${CMAKE_CUDA_COMPILER} known)
    if(known)  # else CMake's default: another compiler, which lists none
      set(CMAKE_CUDA_ARCHITECTURES ${known} CACHE STRING "CUDA architectures")
    endif()
  endif()
  if(NOT CMAKE_CUDA_COMPILER)
    set(${result} "no nvcc that works with ${CMAKE_CUDA_HOST_COMPILER} was found")
  else()
    enable_language(CUDA)
    if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know of it yet
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
      set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
    endif()
    find_package(CUDAToolkit)
    if(NOT TARGET CUDA::cudart_static)
      set(${result} "the toolkit has no libcudart_static.a")
    elseif(CUDAToolkit_VERSION VERSION_LESS STOKER_LEAST_CUDA)
      set(${result} "CUDA ${CUDAToolkit_VERSION} is older than ${STOKER_LEAST_CUDA}")
    endif()
  endif()
endmacro()

set(STOKER_CUDA_FOUND OFF)
if(STOKER_CUDA STREQUAL "AUTO" OR STOKER_CUDA)
  stoker_look_for_cuda(stoker_why_no_cuda)
  if(stoker_why_no_cuda STREQUAL "")
    set(STOKER_CUDA_FOUND ON)
    message(STATUS "CUDA: ${CUDAToolkit_VERSION}, for ${CMAKE_CUDA_ARCHITECTURES}")
  elseif(STOKER_CUDA STREQUAL "AUTO")
    message(STATUS "CUDA: none, ${stoker_why_no_cuda}")
  else()
    message(FATAL_ERROR "STOKER_CUDA=${STOKER_CUDA}: ${stoker_why_no_cuda}. Install the CUDA "
      "toolkit ${STOKER_LEAST_CUDA} or newer and let CMAKE_CUDA_COMPILER name its nvcc, or use "
      "STOKER_CUDA=OFF.")
  endif()
endif()
