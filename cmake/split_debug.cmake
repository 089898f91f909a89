# SPDX-License-Identifier: Apache-2.0
# Run by `cmake --install`. PART=runtime strips the file that was installed; PART=debug puts what that
# takes away to ROOT/lib/debug/.build-id/ab/cdef.debug.
execute_process(COMMAND ${CMAKE_COMMAND} -E env LC_ALL=C ${READELF} -n ${FILE} OUTPUT_VARIABLE _notes COMMAND_ERROR_IS_FATAL ANY)
if(NOT _notes MATCHES "Build ID: (..)([0-9a-f]+)")
  message(FATAL_ERROR "${FILE} has no build id")
endif()
set(_debug_folder ${ROOT}/lib/debug/.build-id/${CMAKE_MATCH_1})
set(_debug_name ${CMAKE_MATCH_2}.debug)
# What objcopy writes has the modes of its input and the caller's umask. Others are to use it, too.
set(_all_read OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
if(PART STREQUAL runtime)
  set(_file ${ROOT}/${DESTINATION}/${NAME})
  execute_process(COMMAND ${OBJCOPY} --strip-all ${FILE} ${_file} COMMAND_ERROR_IS_FATAL ANY)
  file(CHMOD ${_file} PERMISSIONS ${_all_read} OWNER_EXECUTE GROUP_EXECUTE WORLD_EXECUTE)
else()
  set(_file ${_debug_folder}/${_debug_name})
  execute_process(COMMAND sh -c "umask 022 && mkdir -p \"$1\"" sh ${_debug_folder} COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${OBJCOPY} --only-keep-debug --compress-debug-sections ${FILE} ${_file} COMMAND_ERROR_IS_FATAL ANY)
  file(CHMOD ${_file} PERMISSIONS ${_all_read})
endif()
