# SPDX-License-Identifier: Apache-2.0
# gpuprof_cuda_headers: the headers of CUDA runtime, CUPTI, NVTX and NCCL. Headers only: nothing of
# NVIDIA's is linked. Looked for in GPUPROF_CUDA_INCLUDE (a variable of CMake, or of the environment), the toolkit,
# the system, and the nvidia-* wheels that tools/setup.sh fetches into .deps/cuda where there is no toolkit.
set(_hints ${GPUPROF_CUDA_INCLUDE} $ENV{GPUPROF_CUDA_INCLUDE} $ENV{CUDA_HOME}/include $ENV{CUDA_PATH}/include
    /usr/local/cuda/include /usr/local/cuda/extras/CUPTI/include ${CMAKE_SOURCE_DIR}/.deps/cuda/include)
set(_dirs)
foreach(_header cuda_runtime_api.h cupti.h nvtx3/nvToolsExt.h nccl.h)
  string(MAKE_C_IDENTIFIER ${_header} _id)
  find_path(GPUPROF_DIR_${_id} ${_header} HINTS ${_hints})
  if(NOT GPUPROF_DIR_${_id})
    message(FATAL_ERROR "gpuprof: ${_header} not found in: ${_hints}. Run tools/setup.sh, or pass "
                        "-DGPUPROF_CUDA_INCLUDE=DIR[;DIR...]")
  endif()
  list(APPEND _dirs ${GPUPROF_DIR_${_id}})
endforeach()
list(REMOVE_DUPLICATES _dirs)
add_library(gpuprof_cuda_headers INTERFACE)
target_include_directories(gpuprof_cuda_headers SYSTEM INTERFACE ${_dirs})
