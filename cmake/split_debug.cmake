# SPDX-License-Identifier: Apache-2.0
# Run by `cmake --install`. PART=runtime strips the file that was installed; PART=debug puts what that
# takes away to ROOT/lib/debug/.build-id/ab/cdef.debug.
execute_process(COMMAND ${READELF} -n ${FILE} OUTPUT_VARIABLE _notes COMMAND_ERROR_IS_FATAL ANY)
if(NOT _notes MATCHES "Build ID: (..)([0-9a-f]+)")
  message(FATAL_ERROR "${FILE} has no build id")
endif()
set(_debug_folder ${ROOT}/lib/debug/.build-id/${CMAKE_MATCH_1})
set(_debug_name ${CMAKE_MATCH_2}.debug)
if(PART STREQUAL runtime)
  execute_process(COMMAND ${OBJCOPY} --strip-all ${FILE} ${ROOT}/${DESTINATION}/${NAME} COMMAND_ERROR_IS_FATAL ANY)
else()
  file(MAKE_DIRECTORY ${_debug_folder})
  execute_process(COMMAND ${OBJCOPY} --only-keep-debug --compress-debug-sections ${FILE} ${_debug_folder}/${_debug_name}
                  COMMAND_ERROR_IS_FATAL ANY)
endif()
