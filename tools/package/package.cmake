# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Man pages and completions from the tools' own help, documentation, and the packed release (scripts/package: a .tar.xz, and by cpack a .deb).
set(pages)
set(from_help sh ${CMAKE_CURRENT_SOURCE_DIR}/package/from_help.sh)
foreach(tool tl-llc tl-run tl-opt tl-golden)
  set(page ${CMAKE_CURRENT_BINARY_DIR}/${tool}.1)
  add_custom_command(OUTPUT ${page} COMMAND ${from_help} man $<TARGET_FILE_DIR:tl-llc> ${tool} > ${page}
    DEPENDS tl-llc ${CMAKE_CURRENT_SOURCE_DIR}/package/from_help.sh VERBATIM)
  list(APPEND pages ${page})
endforeach()
set(completions)
foreach(shell bash zsh fish)
  set(file ${CMAKE_CURRENT_BINARY_DIR}/completions.${shell})
  add_custom_command(OUTPUT ${file} COMMAND ${from_help} ${shell} $<TARGET_FILE_DIR:tl-llc> > ${file}
    DEPENDS tl-llc ${CMAKE_CURRENT_SOURCE_DIR}/package/from_help.sh VERBATIM)
  list(APPEND completions ${file})
endforeach()
# The language for editors of YAML.
add_custom_command(OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/tl-llc.schema.json
  COMMAND tl-llc --emit=schema -o ${CMAKE_CURRENT_BINARY_DIR}/tl-llc.schema.json DEPENDS tl-llc VERBATIM)
if(NOT TL_SANITIZE)  # what they say is the same, and sanitized programs take long
  add_custom_target(tl_help ALL DEPENDS ${pages} ${completions} ${CMAKE_CURRENT_BINARY_DIR}/tl-llc.schema.json)
  install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT tools)
  set(share ${CMAKE_INSTALL_DATADIR})
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/tl-llc.schema.json DESTINATION ${share}/tl-llc COMPONENT tools)
  foreach(tool tl-llc tl-run tl-opt tl-golden)
    install(FILES ${CMAKE_CURRENT_BINARY_DIR}/completions.bash DESTINATION ${share}/bash-completion/completions RENAME ${tool} COMPONENT tools)
    install(FILES ${CMAKE_CURRENT_BINARY_DIR}/completions.fish DESTINATION ${share}/fish/vendor_completions.d RENAME ${tool}.fish COMPONENT tools)
  endforeach()
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/completions.zsh DESTINATION ${share}/zsh/vendor-completions RENAME _tl-llc COMPONENT tools)
endif()
install(FILES ${CMAKE_SOURCE_DIR}/README.md ${CMAKE_SOURCE_DIR}/LICENSE ${CMAKE_SOURCE_DIR}/THIRD_PARTY_NOTICES.md
  DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT tools)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/docs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT tools FILES_MATCHING PATTERN "*.md" PATTERN "*.png")

set(CPACK_PACKAGE_NAME tl-llc)
set(CPACK_PACKAGE_VENDOR "the authors of tl-llc")
set(CPACK_PACKAGE_CONTACT "the authors of tl-llc <noreply@example.org>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_RESOURCE_FILE_LICENSE ${CMAKE_SOURCE_DIR}/LICENSE)
set(CPACK_GENERATOR DEB)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGE_FILE_NAME tl-llc-${PROJECT_VERSION}-linux-x86_64)
# libtl.a is for those who build it themselves: it is larger than all else, and asks for LLVM's archives.
set(CPACK_COMPONENTS_ALL tools libtl)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6 (>= 2.35)")
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_THREADS 1)
include(CPack)
