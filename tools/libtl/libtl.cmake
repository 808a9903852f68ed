# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# libtl, shared and static, and what installing it takes. Both hold the objects of every module below the harness.
include(CMakePackageConfigHelpers)

set(tl_objects)
foreach(module tl_support tl_ptx tl_ir tl_frontend tl_passes tl_llvm_backend tl_emulator tl_runtime tl_compile_road tl_emulated)
  list(APPEND tl_objects $<TARGET_OBJECTS:${module}>)
endforeach()
set(tl_public_headers ${CMAKE_SOURCE_DIR}/include/tl/status.h ${CMAKE_SOURCE_DIR}/include/tl/compiler.h
  ${CMAKE_SOURCE_DIR}/include/tl/runtime.h ${CMAKE_SOURCE_DIR}/include/tl/python.h ${CMAKE_SOURCE_DIR}/include/tl/tl.h)

add_library(tl_shared SHARED libtl/compiler.c libtl/emulator.c ${tl_objects})
add_library(tl::tl ALIAS tl_shared)
target_link_options(tl_shared PRIVATE -Wl,--version-script=${CMAKE_CURRENT_SOURCE_DIR}/libtl/tl.map)
if(TL_SANITIZE)  # the sanitizers' runtime is in the program
  target_link_options(tl_shared PUBLIC $<BUILD_INTERFACE:-fsanitize=address,undefined>)
else()
  target_link_options(tl_shared PRIVATE -Wl,--no-undefined)
endif()
set_target_properties(tl_shared PROPERTIES OUTPUT_NAME tl VERSION ${PROJECT_VERSION} SOVERSION 0 EXPORT_NAME tl
  LINK_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/libtl/tl.map)
target_link_libraries(tl_shared PRIVATE $<BUILD_INTERFACE:tl_flags> $<BUILD_INTERFACE:tl_llvm> m dl Threads::Threads)
if(TL_STATIC_LLVM)
  # Debian's archives are made for programs, not for shared libraries: all that the linker minds is jansson's use of `stdin`, whose
  # place takes a name of our own (json_loadf alone compares with it, and nobody calls that).
  find_library(TL_JANSSON_ARCHIVE NAMES libjansson.a REQUIRED)
  set(archive ${CMAKE_CURRENT_BINARY_DIR}/libjansson_for_shared.a)
  add_custom_command(OUTPUT ${archive} COMMAND ${CMAKE_OBJCOPY} --redefine-sym stdin=tl_no_stdin ${TL_JANSSON_ARCHIVE} ${archive} VERBATIM)
  add_custom_target(tl_jansson_for_shared DEPENDS ${archive})
  add_dependencies(tl_shared tl_jansson_for_shared)
  target_sources(tl_shared PRIVATE libtl/no_stdin.c)
  target_link_libraries(tl_shared PRIVATE -l:libyaml.a ${archive})
  target_link_options(tl_shared PRIVATE -s)
  set_property(TARGET tl_shared APPEND PROPERTY LINK_DEPENDS ${archive})
else()
  target_link_libraries(tl_shared PRIVATE yaml jansson)
endif()

# The emulated driver as a library: a few jumps into libtl, beside which it lies.
add_library(tl_emulated_cuda SHARED libtl/emulated_cuda.c)
target_link_libraries(tl_emulated_cuda PRIVATE tl_shared $<BUILD_INTERFACE:tl_flags>)
target_include_directories(tl_emulated_cuda PRIVATE ${CMAKE_SOURCE_DIR})
target_link_options(tl_emulated_cuda PRIVATE -Wl,--version-script=${CMAKE_CURRENT_SOURCE_DIR}/libtl/cuda.map)
set_target_properties(tl_emulated_cuda PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib INSTALL_RPATH "\$ORIGIN"
  LINK_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/libtl/cuda.map)
if(TL_STATIC_LLVM)
  target_link_options(tl_emulated_cuda PRIVATE -s)
endif()

add_library(tl_static STATIC libtl/compiler.c libtl/emulator.c ${tl_objects})
set_target_properties(tl_static PROPERTIES OUTPUT_NAME tl)
target_link_libraries(tl_static PRIVATE $<BUILD_INTERFACE:tl_flags> $<BUILD_INTERFACE:tl_llvm>)

foreach(library tl_shared tl_static)
  target_include_directories(${library} PUBLIC $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  set_target_properties(${library} PROPERTIES ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
endforeach()

# What a program that links libtl.a must add.
if(TL_STATIC_LLVM)
  string(REPLACE ";" " " TL_PC_LIBS_PRIVATE "-L${TL_LLVM_LIBDIR};${TL_LLVM_LIBS};-lzstd;-lz;-lstdc++;-lm;-ldl;-lpthread")
else()
  set(TL_PC_LIBS_PRIVATE "-L${TL_LLVM_LIBDIR} -lLLVM-22 -lm -ldl -lpthread")
endif()
# The prefix as seen from the .pc file, so that the installed tree can be moved and `cmake --install --prefix` works.
file(RELATIVE_PATH TL_PC_PREFIX /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
configure_file(libtl/tl.pc.in ${CMAKE_CURRENT_BINARY_DIR}/tl.pc @ONLY)
configure_package_config_file(libtl/tlConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/tlConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/tl PATH_VARS CMAKE_INSTALL_BINDIR CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/tlConfigVersion.cmake COMPATIBILITY SameMinorVersion)

install(TARGETS tl_shared EXPORT tlTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT libtl)
install(TARGETS tl_emulated_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT libtl)
install(TARGETS tl_static ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT static)
install(FILES ${tl_public_headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tl COMPONENT libtl)
install(EXPORT tlTargets NAMESPACE tl:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/tl COMPONENT libtl)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/tlConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/tlConfigVersion.cmake
  libtl/tlGolden.cmake libtl/tlKernels.cmake DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/tl COMPONENT libtl)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/tl.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT libtl)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/kernels/ DESTINATION ${CMAKE_INSTALL_DATADIR}/tl/kernels COMPONENT tools FILES_MATCHING PATTERN "*.yaml" PATTERN "README.md")

# ninja wheel: build/…/wheel/tl_llc-….whl
find_program(TL_PYTHON NAMES python3)
if(TL_PYTHON)
  add_custom_target(wheel COMMAND ${TL_PYTHON} -B ${CMAKE_SOURCE_DIR}/bindings/python/make_wheel.py ${PROJECT_VERSION} $<TARGET_FILE:tl_shared>
    $<TARGET_FILE:tl-llc> ${CMAKE_BINARY_DIR}/wheel ${CMAKE_STRIP} DEPENDS tl_shared tl-llc VERBATIM)
endif()
