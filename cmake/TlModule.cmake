# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# tl_add_module(<name> [DEPS lib...]): a static library from the .c (and .S) files of the current directory and of its rooms.
# tl_add_unit_test(<name> [DEPS lib...] [TIMEOUT seconds]): test/unit/<name>.c as one Check program and one ctest.

add_library(tl_flags INTERFACE)
target_include_directories(tl_flags INTERFACE ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/include)
target_compile_definitions(tl_flags INTERFACE _GNU_SOURCE TL_VERSION="${PROJECT_VERSION}")
target_compile_options(tl_flags INTERFACE
  $<$<COMPILE_LANGUAGE:C>:-Wall;-Wextra;-Wshadow;-Wstrict-prototypes;-Wmissing-prototypes;-Wpointer-arith;-Wwrite-strings;-Wvla;-Wno-missing-field-initializers;-fno-common;-ffp-contract=off>)
if(TL_WERROR)
  target_compile_options(tl_flags INTERFACE $<$<COMPILE_LANGUAGE:C>:-Werror>)
endif()
if(TL_SANITIZE)
  target_compile_options(tl_flags INTERFACE -fsanitize=address,undefined -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
  target_compile_definitions(tl_flags INTERFACE TL_SANITIZED=1)
  target_link_options(tl_flags INTERFACE -fsanitize=address,undefined)
endif()

function(tl_add_module name)
  cmake_parse_arguments(ARG "" "" "DEPS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.c ${CMAKE_CURRENT_SOURCE_DIR}/*.S
    ${CMAKE_CURRENT_SOURCE_DIR}/*/*.c ${CMAKE_CURRENT_SOURCE_DIR}/*/*.S ${CMAKE_CURRENT_SOURCE_DIR}/*/*/*.c)
  if(NOT sources)
    add_library(${name} INTERFACE)
    return()
  endif()
  add_library(${name} STATIC ${sources})
  target_link_libraries(${name} PUBLIC tl_flags ${ARG_DEPS})
endfunction()

function(tl_add_unit_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "DEPS" ${ARGN})
  add_executable(${name} ${CMAKE_SOURCE_DIR}/test/unit/${name}.c)
  target_link_libraries(${name} PRIVATE tl_flags ${ARG_DEPS} PkgConfig::CHECK)
  add_test(NAME unit.${name} COMMAND ${name} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  # Check gives a test case 4 seconds unless told; a busy machine needs more.
  set_tests_properties(unit.${name} PROPERTIES ENVIRONMENT CK_DEFAULT_TIMEOUT=120)
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
    if(TL_SANITIZE)
      set(ARG_TIMEOUT 360)  # three times as slow, and more on a busy machine
    endif()
  endif()
  set_tests_properties(unit.${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS unit)
endfunction()
