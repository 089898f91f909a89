# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` and CPack put where. Two components: `runtime`, stripped, and `debug`, the
# debug information of its files by build id, which is installed only when it is named.
include(GNUInstallDirs)

# Goes before an install() that may make its folder: others can read it, whatever the umask.
function(gpuprof_install_folder destination component)
  install(CODE "execute_process(COMMAND sh -c [[umask 022 && mkdir -p \"$1\"]] sh
    \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${destination}\" COMMAND_ERROR_IS_FATAL ANY)" COMPONENT ${component} ${ARGN})
endfunction()

# Installs a target's file stripped. gdb and `gpuprof report --debug-dir` find the rest by build id.
function(gpuprof_install_stripped target destination)
  target_link_options(${target} PRIVATE -Wl,--build-id=sha1)
  gpuprof_install_folder(${destination} runtime)
  install(PROGRAMS $<TARGET_FILE:${target}> DESTINATION ${destination} COMPONENT runtime)
  foreach(_component runtime debug)
    set(_all "")
    if(_component STREQUAL debug)
      set(_all EXCLUDE_FROM_ALL)
    endif()
    install(CODE "execute_process(COMMAND \"${CMAKE_COMMAND}\" \"-DFILE=$<TARGET_FILE:${target}>\" \"-DNAME=$<TARGET_FILE_NAME:${target}>\"
      \"-DROOT=\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}\" \"-DDESTINATION=${destination}\" -DPART=${_component}
      \"-DOBJCOPY=${CMAKE_OBJCOPY}\" \"-DREADELF=${CMAKE_READELF}\"
      -P \"${CMAKE_SOURCE_DIR}/cmake/split_debug.cmake\" COMMAND_ERROR_IS_FATAL ANY)"
      COMPONENT ${_component} ${_all})
  endforeach()
endfunction()

# Pages that the command makes from its own tables, once it is built.
function(gpuprof_install_pages)
  if(GPUPROF_SANITIZE)
    return()
  endif()
  set(_pages)
  foreach(_row "man;gpuprof.1;${CMAKE_INSTALL_MANDIR}/man1" "bash;gpuprof;share/bash-completion/completions"
          "zsh;_gpuprof;share/zsh/site-functions" "fish;gpuprof.fish;share/fish/vendor_completions.d")
    list(GET _row 0 _kind)
    list(GET _row 1 _name)
    list(GET _row 2 _destination)
    set(_page ${CMAKE_BINARY_DIR}/pages/${_kind}/${_name})
    file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/pages/${_kind})
    add_custom_command(OUTPUT ${_page} COMMAND gpuprof completion ${_kind} > ${_page} DEPENDS gpuprof VERBATIM)
    list(APPEND _pages ${_page})
    gpuprof_install_folder(${_destination} runtime)
    install(FILES ${_page} DESTINATION ${_destination} COMPONENT runtime)
  endforeach()
  # Below /usr Debian's zsh looks in this folder, and not in site-functions.
  install(CODE "if(CMAKE_INSTALL_PREFIX MATCHES [[/usr$]])
      set(_folder \"\${CMAKE_INSTALL_PREFIX}/share/zsh/vendor-completions\")
      execute_process(COMMAND sh -c [[umask 022 && mkdir -p \"$1\"]] sh \"\$ENV{DESTDIR}\${_folder}\" COMMAND_ERROR_IS_FATAL ANY)
      file(INSTALL [[${CMAKE_BINARY_DIR}/pages/zsh/_gpuprof]] DESTINATION \"\${_folder}\")
    endif()" COMPONENT runtime)
  add_custom_target(gpuprof_pages ALL DEPENDS ${_pages})
endfunction()

gpuprof_install_folder(${CMAKE_INSTALL_DATADIR}/doc/gpuprof runtime)
install(FILES LICENSE NOTICE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/gpuprof COMPONENT runtime)

# What is shipped also has the licences of what is linked, from the Debian packages that it came from.
if(GPUPROF_STATIC)
  set(_third_party ${CMAKE_BINARY_DIR}/pages/THIRD-PARTY.txt)
  add_custom_command(OUTPUT ${_third_party}
    COMMAND ${CMAKE_SOURCE_DIR}/packaging/third_party.sh ${_third_party} ${CMAKE_SYSROOT}
    DEPENDS ${CMAKE_SOURCE_DIR}/packaging/third_party.sh VERBATIM)
  add_custom_target(gpuprof_third_party ALL DEPENDS ${_third_party})
  install(FILES ${_third_party} DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/gpuprof COMPONENT runtime)
endif()

set(CPACK_GENERATOR "TGZ;DEB")
set(CPACK_PACKAGE_NAME gpuprof)
set(CPACK_PACKAGE_VENDOR gpuprof)
set(CPACK_PACKAGE_CONTACT "the gpuprof developers")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "profiler of GPU training and inference programs, by preload")
set(CPACK_PACKAGE_FILE_NAME gpuprof-${PROJECT_VERSION}-linux-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_PACKAGE_CHECKSUM SHA256)
set(CPACK_COMPONENTS_ALL runtime debug)
set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
set(CPACK_ARCHIVE_RUNTIME_FILE_NAME ${CPACK_PACKAGE_FILE_NAME})
set(CPACK_ARCHIVE_DEBUG_FILE_NAME ${CPACK_PACKAGE_FILE_NAME}-debug)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME gpuprof)
set(CPACK_DEBIAN_DEBUG_PACKAGE_NAME gpuprof-dbgsym)
file(STRINGS ${PROJECT_SOURCE_DIR}/packaging/newest_glibc.txt _glibc)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_DEPENDS "libc6 (>= ${_glibc})")
set(CPACK_DEBIAN_DEBUG_PACKAGE_DEPENDS "gpuprof (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64)  # by default this machine's
endif()
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_SOURCE_DIR}/cmake/gpuprof_package.cmake)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/open_package.cmake)
include(CPack)
