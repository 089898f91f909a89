# SPDX-License-Identifier: Apache-2.0
# Warnings and sanitizers for every target of ours, as one interface library.
add_library(gpuprof_options INTERFACE)
target_compile_options(gpuprof_options INTERFACE -Wall -Wextra -Wpedantic -fno-omit-frame-pointer)
# A new value of an enum is an error in each switch that lists the values without a default.
target_compile_options(gpuprof_options INTERFACE -Werror=switch)
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
  # A product and a sum are rounded apart, as on x86-64: a dump's report has the same digits on both.
  target_compile_options(gpuprof_options INTERFACE -ffp-contract=off)
endif()
if(GPUPROF_SANITIZE)
  target_compile_options(gpuprof_options INTERFACE -fsanitize=${GPUPROF_SANITIZE} -fno-sanitize-recover=all)
  target_link_options(gpuprof_options INTERFACE -fsanitize=${GPUPROF_SANITIZE})
endif()

if(GPUPROF_STATIC)
  # What is shipped names neither folder: its bytes and build ids are the same wherever they lie. The last that fits counts.
  add_compile_options(-ffile-prefix-map=${CMAKE_SOURCE_DIR}=. -ffile-prefix-map=${CMAKE_BINARY_DIR}=build)
endif()

# For a folder whose sources take long to compile: debug information of lines alone (0.8 of the time). Under a
# sanitizer, full optimization is not worth its time either (0.6).
macro(gpuprof_compile_quickly)
  add_compile_options(-g1)
  if(GPUPROF_SANITIZE)
    add_compile_options(-O1)
  endif()
endmacro()
# The same in a build that only tests run on. Fuzzers run for long, and what is shipped has all debug information.
macro(gpuprof_compile_quickly_for_tests)
  if(GPUPROF_BUILD_TESTS AND NOT GPUPROF_BUILD_FUZZERS AND NOT GPUPROF_STATIC)
    gpuprof_compile_quickly()
  endif()
endmacro()

# Code that runs inside the traced process: no exceptions, no RTTI, no thread-safe statics, because no
# C++ runtime library may come with it (design rule 2). Also linked into tools and tests.
add_library(gpuprof_guest_options INTERFACE)
target_link_libraries(gpuprof_guest_options INTERFACE gpuprof_options)
target_compile_options(gpuprof_guest_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions -fno-rtti -fno-threadsafe-statics>
  -fvisibility=hidden -ftls-model=initial-exec)
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
  # GCC's functions that choose atomic instructions by processor come with a constructor.
  target_compile_options(gpuprof_guest_options INTERFACE -mno-outline-atomics)
endif()
