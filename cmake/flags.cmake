# Flags of all targets.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)  # for stoker alone, where another project adds it
endif()
find_program(STOKER_CCACHE ccache)
if(STOKER_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${STOKER_CCACHE})
endif()

add_library(stoker_flags INTERFACE)
target_include_directories(stoker_flags INTERFACE ${PROJECT_SOURCE_DIR})
# nvcc knows none of these, and the host code that it makes of a .cu is neither pedantic nor
# sanitized: gpu/CMakeLists.txt has its flags.
macro(stoker_cxx_options)
  target_compile_options(stoker_flags INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${ARGN}>")
endmacro()
# -ffp-contract=off: the same floating-point bytes with and without fused multiply-add.
stoker_cxx_options(-Wall -Wextra -Wpedantic -ffp-contract=off)
target_compile_definitions(stoker_flags INTERFACE
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Debug,Sanitize>>:_GLIBCXX_ASSERTIONS>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # A false warning about std::string's operator+ (gcc bug 105651).
  stoker_cxx_options(-Wno-restrict)
endif()
if(STOKER_WERROR)
  stoker_cxx_options(-Werror)
endif()
if(STOKER_SANITIZE)
  # The thread sanitizer does not instrument targets with the property STOKER_NO_TSAN.
  set(sanitized "$<NOT:$<BOOL:$<TARGET_PROPERTY:STOKER_NO_TSAN>>>")
  if(NOT STOKER_SANITIZE STREQUAL "thread")
    set(sanitized 1)
  endif()
  stoker_cxx_options($<${sanitized}:-fsanitize=${STOKER_SANITIZE}> -fno-sanitize-recover=all)
  # -g1: line numbers in the reports.
  stoker_cxx_options(-fno-omit-frame-pointer -g1)
  if(NOT STOKER_FUZZ)
    # These take a quarter of the compiler's time. A null pointer ends a test without them, the address sanitizer
    # finds an object that is gone, and the fuzz targets check decoders and parsers with all three.
    stoker_cxx_options(-fno-sanitize=null,vptr,alignment)
  endif()
  # -no-pie: otherwise each start of a test relocates two million pointers in the sanitizer's tables.
  target_link_options(stoker_flags INTERFACE -fsanitize=${STOKER_SANITIZE}
    $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-no-pie>)
endif()
if(STOKER_OLD_LIBRARIES)
  target_link_options(stoker_flags INTERFACE @${STOKER_OLD_LIBRARIES}/link)
  set_property(TARGET stoker_flags APPEND PROPERTY INTERFACE_LINK_DEPENDS ${STOKER_OLD_LIBRARIES}/link)
endif()
# Highway compiles kernels for each of its targets but these. SSSE3: CPUs that have it and not SSE4 are of
# before 2008, and run the scalar code. SVE, RVV: vectors with a length known only at run time would need
# another layout of the transposes.
set(stoker_no_targets HWY_SSSE3 HWY_SVE HWY_SVE2 HWY_SVE_256 HWY_SVE2_128 HWY_RVV)
if(STOKER_SANITIZE)
  # The scalar code, AVX2 and, where the machine has it, AVX3_DL; tests of the release build run the others.
  list(APPEND stoker_no_targets HWY_SSE4 HWY_AVX3)
  file(READ /proc/cpuinfo stoker_cpu)
  if(NOT stoker_cpu MATCHES avx512_vbmi2)
    list(APPEND stoker_no_targets HWY_AVX3_DL)
  endif()
endif()
list(JOIN stoker_no_targets "|" stoker_no_targets)
target_compile_definitions(stoker_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:HWY_WANT_AVX3_DL=1>
  "$<$<COMPILE_LANGUAGE:CXX>:HWY_DISABLED_TARGETS=(${stoker_no_targets})>")

# stoker_up_to_avx2(SOURCES...): Highway compiles them without AVX-512. They use no vectors, and with it g++ 12
# keeps numbers in mask registers; CPUs with AVX2 have BMI2, whose shifts they use.
function(stoker_up_to_avx2)
  set_property(SOURCE ${ARGN} APPEND PROPERTY COMPILE_OPTIONS
    -UHWY_DISABLED_TARGETS "-DHWY_DISABLED_TARGETS=(${stoker_no_targets}|HWY_AVX3|HWY_AVX3_DL)")
endfunction()

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)

# stoker_unity(TARGETS...): up to sixteen of their sources are compiled together, so that the headers they
# share are parsed once.
function(stoker_unity)
  set_target_properties(${ARGN} PROPERTIES UNITY_BUILD ${STOKER_UNITY} UNITY_BUILD_BATCH_SIZE 16)
  if(STOKER_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # In a unity build a class may have a field of a type that is local to its source.
    foreach(target IN LISTS ARGN)
      target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
    endforeach()
  endif()
endfunction()

# stoker_sort_by_header(TARGET HEADERS...): puts the sources that include the first of the headers first, then
# those that include the second and so on, so that stoker_unity compiles them together.
function(stoker_sort_by_header target)
  get_target_property(others ${target} SOURCES)
  set(sorted)
  foreach(header IN LISTS ARGN)
    foreach(source IN LISTS others)
      file(STRINGS ${source} including REGEX "^#include <${header}>" LIMIT_COUNT 1)
      if(including)
        list(APPEND sorted ${source})
      endif()
    endforeach()
    list(REMOVE_ITEM others ${sorted})
  endforeach()
  set_target_properties(${target} PROPERTIES SOURCES "${sorted};${others}")
endfunction()

# Sanitized code runs several times as fast with -O1 as with -O0. Tests are compiled without it, because it
# takes more time than it gains, except for what they share.
set(STOKER_OPTIMISED_IF_SANITIZED $<$<CONFIG:Sanitize>:-O1>)

# stoker_part(NAME SOURCES ... LIBS ...): one folder of the library, compiled to objects. Unity builds leave
# out the sources that Highway compiles for several instruction sets.
function(stoker_part name)
  cmake_parse_arguments(PART "" "" "SOURCES;LIBS" ${ARGN})
  add_library(${name} OBJECT ${PART_SOURCES})
  target_link_libraries(${name} PUBLIC stoker_flags PRIVATE ${PART_LIBS})
  target_compile_options(${name} PRIVATE ${STOKER_OPTIMISED_IF_SANITIZED})
  foreach(source IN LISTS PART_SOURCES)
    file(STRINGS ${source} several REGEX "^#include <hwy/foreach_target.h>" LIMIT_COUNT 1)
    if(several)
      set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
  endforeach()
endfunction()

# stoker_unoptimised_by_clang(SOURCES...): at -O1 with sanitizers, clang 14 needs 15 minutes to compile one
# of them.
function(stoker_unoptimised_by_clang)
  set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS
    $<$<AND:$<CONFIG:Sanitize>,$<CXX_COMPILER_ID:Clang>>:-O0>)
endfunction()

# stoker_reference(SOURCES... [LIBS ...]): the references that fast code is compared with. They lie beside
# it, and are a library of tests and benchmarks: libstoker has only those references that it calls.
add_library(stoker_reference STATIC EXCLUDE_FROM_ALL)
target_link_libraries(stoker_reference PUBLIC stoker)
target_compile_options(stoker_reference PRIVATE ${STOKER_OPTIMISED_IF_SANITIZED})
function(stoker_reference)
  cmake_parse_arguments(PART "" "" "LIBS" ${ARGN})
  target_sources(stoker_reference PRIVATE ${PART_UNPARSED_ARGUMENTS})
  target_link_libraries(stoker_reference PRIVATE ${PART_LIBS})
endfunction()
