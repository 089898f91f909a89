# SPDX-License-Identifier: Apache-2.0
# Writes the version script from the table: what is not listed here stays inside the library.
file(STRINGS ${TABLE} _rows REGEX "^GPUPROF_(API|API_AS|HAND|DRIVER|DRIVER_HAND)\\(")
set(_names)
foreach(_row IN LISTS _rows)
  string(REGEX REPLACE "^GPUPROF_[A-Z_]+\\([a-z]+, *([A-Za-z0-9_]+).*" "\\1" _name "${_row}")
  string(APPEND _names "    ${_name};\n")
endforeach()
set(_process "_exit;_Exit;quick_exit;execve;execv;execvp;execvpe;fexecve;execveat;execl;execlp;execle;getenv;dlopen;dlsym;dlvsym")
# PyTorch's, in torch_hooks.cpp.
list(APPEND _process _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE _ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE _ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE _ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE _ZN3c1025ProfiledCPUMemoryReporter3NewEPvm _ZN3c1025ProfiledCPUMemoryReporter6DeleteEPv)
foreach(_name IN LISTS _process)
  string(APPEND _names "    ${_name};\n")
endforeach()
file(WRITE ${OUTPUT} "{\n  global:\n${_names}    gpuprof_*;\n    InitializeInjection*;\n  local: *;\n};\n")
