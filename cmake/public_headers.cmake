# The headers for users, in their installed form, and the names that they declare.

# The headers that `file` includes, directly or not, without itself.
function(stoker_reached_headers file result)
  set(reached)
  set(pending ${file})
  while(pending)
    list(POP_FRONT pending current)
    file(STRINGS ${PROJECT_SOURCE_DIR}/${current} lines REGEX "^#include \"")
    foreach(line IN LISTS lines)
      string(REGEX REPLACE "^#include \"([^\"]+)\".*" "\\1" next "${line}")
      if(NOT next IN_LIST reached)
        list(APPEND reached ${next})
        list(APPEND pending ${next})
      endif()
    endforeach()
  endwhile()
  set(${result} ${reached} PARENT_SCOPE)
endfunction()

# Copies `header` to `copy`, with its includes changed to stoker/…: a program may have a
# transforms/spec/transform.h of its own.
function(stoker_copy_header header copy)
  file(READ ${PROJECT_SOURCE_DIR}/${header} text)
  string(REGEX REPLACE "(^|\n)#include \"" "\\1#include \"stoker/" text "${text}")
  set(old)
  if(EXISTS ${copy})
    file(READ ${copy} old)
  endif()
  if(NOT text STREQUAL old)  # else what includes it would be compiled again
    file(WRITE ${copy} "${text}")
  endif()
endfunction()

# Makes `folder`/stoker the include folder that `cmake --install` installs.
function(stoker_copy_public_headers folder)
  set(copies)
  foreach(header IN LISTS stoker_umbrellas)
    get_filename_component(name ${header} NAME)
    list(APPEND copies ${folder}/stoker/${name})
    stoker_copy_header(${header} ${folder}/stoker/${name})
  endforeach()
  foreach(header IN LISTS stoker_public_headers)
    set(copy ${folder}/stoker/${header})
    stoker_copy_header(${header} ${copy})
    list(APPEND copies ${copy})
  endforeach()
  file(GLOB_RECURSE stale ${folder}/stoker/*.h)
  list(REMOVE_ITEM stale ${copies})
  if(stale)
    file(REMOVE ${stale})
  endif()
endfunction()

# The classes and functions that `headers` declare, as named in namespace stoker: Loader, packed::PackedFile.
function(stoker_declared_names headers classes functions)
  set(found_classes)
  set(found_functions)
  foreach(header IN LISTS headers)
    file(READ ${PROJECT_SOURCE_DIR}/${header} text)
    string(REGEX REPLACE "\\[\\[[a-z]+\\]\\] " "" text "\n${text}")
    set(nested)
    if(text MATCHES "\nnamespace stoker::([a-z0-9_:]+) {")
      set(nested ${CMAKE_MATCH_1}::)
    endif()
    string(REGEX MATCHALL "\n(class|struct) [A-Za-z0-9_]+[^;{\n]*{" matches "${text}")
    list(TRANSFORM matches REPLACE "\n(class|struct) ([A-Za-z0-9_]+).*" "\\2")
    list(TRANSFORM matches PREPEND "${nested}")
    list(APPEND found_classes ${matches})
    # Up to the parenthesis of a declaration that begins a line, or of one whose type has a line of
    # its own.
    string(REGEX MATCHALL "\n([A-Za-z][A-Za-z0-9_:<>,\\*& ]*[ \\*&])?[A-Za-z0-9_]+\\(" matches
      "${text}")
    list(TRANSFORM matches REPLACE ".*[ \\*&\n]([A-Za-z0-9_]+)\\($" "\\1")
    list(TRANSFORM matches PREPEND "${nested}")
    list(APPEND found_functions ${matches})
  endforeach()
  list(REMOVE_DUPLICATES found_classes)
  list(REMOVE_DUPLICATES found_functions)
  set(${classes} ${found_classes} PARENT_SCOPE)
  set(${functions} ${found_functions} PARENT_SCOPE)
endfunction()

# The headers that programs in C++ and in C include, and all that these include: the public interface.
set(stoker_umbrellas bindings/cpp/stoker/stoker.h bindings/c/stoker_c.h)
set(stoker_public_headers)
foreach(header IN LISTS stoker_umbrellas)
  stoker_reached_headers(${header} reached)
  list(APPEND stoker_public_headers ${reached})
endforeach()
# These may include others.
set_property(DIRECTORY APPEND PROPERTY
  CMAKE_CONFIGURE_DEPENDS ${stoker_umbrellas} ${stoker_public_headers})
