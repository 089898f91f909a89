# SPDX-License-Identifier: Apache-2.0
# cmake -D OUT=DIR -D ERRORS=driver_types.h -D RUNTIME=... -D DRIVER=... -P generate_names.cmake
# Writes rows {number, "name"}, from the enums of the installed headers.
function(write_rows header pattern file)
  file(STRINGS ${header} _lines REGEX "${pattern}")
  set(_rows "")
  foreach(_line IN LISTS _lines)
    if(_line MATCHES "${pattern}")
      set(_name ${CMAKE_MATCH_1})
      set(_number ${CMAKE_MATCH_2})
      if(NOT _name MATCHES "^(SIZE|INVALID)$")
        string(APPEND _rows "{${_number}, \"${_name}\"},\n")
      endif()
    endif()
  endforeach()
  if(_rows STREQUAL "")
    message(FATAL_ERROR "simcuda: no names found in ${header}")
  endif()
  file(WRITE ${OUT}/${file} "${_rows}")
endfunction()

write_rows(${ERRORS} "^ *(cudaError[A-Za-z0-9]+|cudaSuccess) *= *([0-9]+)" simcuda_error_names.inc)
write_rows(${RUNTIME} "CUPTI_RUNTIME_TRACE_CBID_([A-Za-z0-9_]+) *= *([0-9]+)," simcuda_runtime_cbids.inc)
write_rows(${DRIVER} "CUPTI_DRIVER_TRACE_CBID_([A-Za-z0-9_]+) *= *([0-9]+)," simcuda_driver_cbids.inc)
