# SPDX-License-Identifier: Apache-2.0
# A toolchain file: builds for aarch64 with Debian's cross compiler, links the arm64 libraries that
# tools/aarch64_sysroot.sh unpacked, and runs what the build itself runs under the qemu of that folder.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(GPUPROF_SYSROOT ${CMAKE_CURRENT_LIST_DIR}/../.deps/aarch64 CACHE PATH "folder of tools/aarch64_sysroot.sh")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES GPUPROF_SYSROOT)
get_filename_component(CMAKE_SYSROOT ${GPUPROF_SYSROOT} ABSOLUTE)
if(NOT EXISTS ${CMAKE_SYSROOT}/usr/include)
  message(FATAL_ERROR "gpuprof: no arm64 libraries in ${CMAKE_SYSROOT}. Run tools/aarch64_sysroot.sh .deps/aarch64, or set GPUPROF_SYSROOT")
endif()

set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_CROSSCOMPILING_EMULATOR ${CMAKE_CURRENT_LIST_DIR}/run_aarch64.sh;${CMAKE_SYSROOT})
# The tests' python is the folder's (tests/aarch64.sh); the build calls none.
set(GPUPROF_PYTHON /usr/bin/python3 CACHE FILEPATH "python with pytest, for the end-to-end tests")

# Programs are this machine's, libraries and packages the other's. Headers of CUDA are the same for both, wherever they lie.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE BOTH)
