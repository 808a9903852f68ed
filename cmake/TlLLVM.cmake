# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# tl_llvm: LLVM 22 through its C API, shared for development, static for release.
find_program(LLVM_CONFIG NAMES llvm-config-22 HINTS /usr/lib/llvm-22/bin REQUIRED)
execute_process(COMMAND ${LLVM_CONFIG} --version OUTPUT_VARIABLE TL_LLVM_VERSION OUTPUT_STRIP_TRAILING_WHITESPACE)
if(NOT TL_LLVM_VERSION MATCHES "^22\\.")
  message(FATAL_ERROR "tl-llc needs LLVM 22, found ${TL_LLVM_VERSION}")
endif()
execute_process(COMMAND ${LLVM_CONFIG} --includedir OUTPUT_VARIABLE TL_LLVM_INCLUDE OUTPUT_STRIP_TRAILING_WHITESPACE)
execute_process(COMMAND ${LLVM_CONFIG} --libdir OUTPUT_VARIABLE TL_LLVM_LIBDIR OUTPUT_STRIP_TRAILING_WHITESPACE)

add_library(tl_llvm INTERFACE)
target_include_directories(tl_llvm SYSTEM INTERFACE ${TL_LLVM_INCLUDE})
target_compile_definitions(tl_llvm INTERFACE TL_LLVM_VERSION="${TL_LLVM_VERSION}")
if(TL_STATIC_LLVM)
  execute_process(COMMAND ${LLVM_CONFIG} --link-static --libs core analysis bitreader bitwriter irreader linker passes nvptx x86 orcjit target
    OUTPUT_VARIABLE TL_LLVM_LIBS OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(TL_LLVM_LIBS)
  target_link_directories(tl_llvm INTERFACE ${TL_LLVM_LIBDIR})
  # LLVM is C++: its static archives need the C++ runtime, linked statically too so that the tools stand alone.
  target_link_libraries(tl_llvm INTERFACE -Wl,--start-group ${TL_LLVM_LIBS} -Wl,--end-group
    -l:libzstd.a -l:libz.a -Wl,-Bstatic -lstdc++ -Wl,-Bdynamic -static-libgcc m dl Threads::Threads)
  target_link_options(tl_llvm INTERFACE -Wl,--gc-sections -Wl,--exclude-libs,ALL -Wl,-u,arc4random)
  add_compile_definitions(TL_STATIC_LLVM=1)
  add_compile_options(-ffunction-sections -fdata-sections)
else()
  target_link_directories(tl_llvm INTERFACE ${TL_LLVM_LIBDIR})
  target_link_libraries(tl_llvm INTERFACE LLVM-22 m dl Threads::Threads)
endif()
